#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "dataplane/pipeline/next_hop.h"
#include "dataplane/pipeline/spsc_ring.h"

namespace sluice::pipeline {

// How a worker gets from an address to a MAC
//
//   address --RouteTable--> (port, on-link address or gateway) --NextHopDirectory--> index
//   index --NextHopTable--> word {MAC, port, state}
//
// The first two steps happen once per new flow (the entry keeps the index), the last per packet. An
// address the directory does not know yet is asked for over the worker's request ring; the
// rtnetlink thread adds it, lets the kernel resolve it and writes the word. Until then up to 8
// packets wait in the worker (hop_queue.h).

/// The word that says "the host knows the way".
inline constexpr NextHopIndex kHostHop{0};

/// Where packets for one address go. `port` and `via` are meaningless for kHostHop.
struct ResolvedHop {
  NextHopIndex index = NextHopIndex::kNone;  ///< kNone: the directory does not know it yet
  PortIndex port = PortIndex::kNone;
  core::IpAddress via;  ///< on-link address or gateway
};

/// A worker asks for the neighbour `address` on `port`.
struct NeighbourRequest {
  PortIndex port = PortIndex::kNone;
  core::IpAddress address;
};
using NeighbourRequestRing = SpscRing<NeighbourRequest>;

/// (port, address) -> index of its word. Grows only: an index is never given to another address, so
/// an entry may keep it for ever. Limit: `size` addresses (at most 65534), index 0 is the host.
///
/// Thread: add() and write() by the one thread that mirrors neighbours; find() and read() by any. A
/// name is written before the cell that leads to it is stored with release.
class NextHopDirectory {
 public:
  explicit NextHopDirectory(std::size_t size);

  /// @return NextHopIndex::kNone: not known (yet).
  [[nodiscard]] NextHopIndex find(PortIndex port, const core::IpAddress& address) const noexcept;
  [[nodiscard]] NextHopWord read(NextHopIndex i) const noexcept { return words_.read(i); }

  /// Finds or makes the index of an address; a new one starts kUnresolved.
  /// @return NextHopIndex::kNone: full.
  NextHopIndex add(PortIndex port, const core::IpAddress& address);
  void write(NextHopIndex i, NextHopWord word) noexcept { words_.write(i, word); }

  /// What index i stands for; i in [1, used()). Thread: that of add().
  [[nodiscard]] NeighbourRequest name(NextHopIndex i) const noexcept {
    const Name& n = names_[static_cast<std::uint16_t>(i)];
    return {n.port, n.address};
  }
  [[nodiscard]] std::size_t used() const noexcept { return used_; }

 private:
  struct Name {
    PortIndex port = PortIndex::kNone;
    core::IpAddress address;
  };
  NextHopTable words_;
  std::vector<Name> names_;
  std::vector<std::atomic<std::uint32_t>> cells_;  // open addressing, load <= 1/2; 0: empty
  std::size_t used_ = 1;
};

}  // namespace sluice::pipeline
