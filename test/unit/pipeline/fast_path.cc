// The worker of production shape with the least possible I/O, as an object file of its own: a test
// looks at what it calls (no allocator, lock or exception machinery).

#include "dataplane/pipeline/worker.h"

namespace sluice::pipeline {

struct NullIo {
  std::size_t receive(Packet*, std::size_t) noexcept;
  std::size_t receive_from_host(Packet*, std::size_t) noexcept;
  void transmit(PortIndex, const Packet&) noexcept;
  std::size_t flush() noexcept;
  bool to_host(const Packet&) noexcept;
  void drop(const Packet&) noexcept;
  bool allocate(PortIndex, Packet&) noexcept;
  bool prepend(Packet&, std::size_t) noexcept;
  bool resize(Packet&, std::size_t) noexcept;
};

template <class Key>
struct NullIndex {
  void locate(const std::uint32_t*, std::uint32_t, std::uint32_t, core::KeyPlaces&) noexcept;
  std::uint64_t read(const Key* const*, const std::uint32_t*, std::uint32_t, std::uint32_t,
                     core::KeyPlaces&, core::KeyData*) noexcept;
  std::uint64_t read_late(const Key* const*, const std::uint32_t*, std::uint32_t, std::uint32_t,
                          core::KeyPlaces&, core::KeyData*) noexcept;
  bool find(const Key&, std::uint32_t, core::KeyData&) noexcept;
  bool insert(const Key&, std::uint32_t, core::KeyData) noexcept;
  bool erase(const Key&, std::uint32_t) noexcept;
  void prefetch(std::uint32_t) const noexcept;
  void prefetch_change(std::uint32_t) const noexcept;
  void prefetch_moves(std::uint32_t) const noexcept;
  void prefetch_key(std::uint32_t) const noexcept;
};

struct NullClock {
  std::uint64_t now_ns() noexcept;
};

using FastWorker = Worker<NullIo, NullIndex<core::FlowKey4>, NullIndex<core::FlowKey6>, NullClock>;
/// Keeps poll_once() and all it calls, and nothing of the construction.
bool poll_for_symbols(FastWorker& worker) noexcept {
  return worker.poll_once();
}

}  // namespace sluice::pipeline
