#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "dataplane/pipeline/packet.h"
#include "dataplane/pipeline/spsc_ring.h"

struct rte_mbuf;

namespace sluice::dpdk {

/// What the tap thread did with the frames of one worker. Thread: written by the tap thread, read
/// by any.
struct alignas(64) HostCounters {
  std::atomic<std::uint64_t> written{0};         ///< frames the host took
  std::atomic<std::uint64_t> write_failed{0};    ///< frames the host did not take
  std::atomic<std::uint64_t> read{0};            ///< frames of the host handed to this worker
  std::atomic<std::uint64_t> ring_full{0};       ///< frames of the host this worker had no room for
  std::atomic<std::uint64_t> no_buffer{0};       ///< frames of the host lost for want of an mbuf
};

/// The rings between workers and the tap thread: one per worker and port towards the host, one per
/// worker from it. Each has one producer and one consumer; full means drop, counted by the producer.
class HostRings {
 public:
  using Ring = pipeline::SpscRing<rte_mbuf*>;

  HostRings(std::size_t workers, std::size_t ports, std::size_t capacity)
      : workers_(workers), ports_(ports), counters_(workers) {
    for (std::size_t i = 0; i < workers * ports; ++i) {
      to_host_.push_back(std::make_unique<Ring>(capacity));
    }
    for (std::size_t i = 0; i < workers; ++i) {
      from_host_.push_back(std::make_unique<Ring>(capacity));
    }
  }

  [[nodiscard]] std::size_t workers() const noexcept { return workers_; }
  [[nodiscard]] std::size_t ports() const noexcept { return ports_; }
  /// Producer: worker. Consumer: the tap thread. Precondition: both indices are in range.
  [[nodiscard]] Ring& to_host(std::size_t worker, std::size_t port) noexcept {
    return *to_host_[worker * ports_ + port];
  }
  /// Producer: the tap thread (mbuf->port is the port's index). Consumer: worker.
  [[nodiscard]] Ring& from_host(std::size_t worker) noexcept { return *from_host_[worker]; }
  [[nodiscard]] HostCounters& counters(std::size_t worker) noexcept { return counters_[worker]; }
  [[nodiscard]] const HostCounters& counters(std::size_t worker) const noexcept {
    return counters_[worker];
  }

  /// Frees every frame on the rings. Precondition: workers and tap thread have ended.
  void drain() noexcept;

 private:
  std::size_t workers_;
  std::size_t ports_;
  std::vector<std::unique_ptr<Ring>> to_host_;
  std::vector<std::unique_ptr<Ring>> from_host_;
  std::vector<HostCounters> counters_;
};

}  // namespace sluice::dpdk
