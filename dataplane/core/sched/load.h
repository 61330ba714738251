#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/core/fwd/forwarding_table.h"

namespace sluice::core {

// How many connections an endpoint has, as one worker sees it
//
// A worker counts its own and must not wait for the others. Every 2 ms the publisher sums all
// workers into `total` and remembers of each worker what it had counted, `base`. In between a
// worker takes total + W x (own - base): what it did since, times the number of workers, because
// the others do about the same. Without that factor all workers send to the same endpoint until the
// next sum (design section 5). What the worker needs of the publisher is one number,
// others = total - W x base, so a sum is never seen by half.

/// Counts of one endpoint at one worker. `own_*` are written by that worker only, `others_*` by the
/// publisher only.
struct LoadCell {
  std::atomic<std::uint32_t> own_active{0};
  std::atomic<std::uint32_t> own_closing{0};
  std::atomic<std::int32_t> others_active{0};  ///< clamped to its range
  std::atomic<std::int32_t> others_closing{0};
};
static_assert(sizeof(LoadCell) == 16);

/// The cells of one worker. A default one shows no connections at all.
class LoadView {
 public:
  LoadView() = default;
  /// @param cells   by EndpointId; borrowed.
  /// @param workers of the group.
  LoadView(std::span<const LoadCell> cells, std::uint32_t workers) noexcept
      : cells_(cells), workers_(workers) {}

  /// Connections that are not closing. IPVS calls a TCP connection active from established on; here
  /// it is from its first packet, or else a burst would all go to one endpoint before the first
  /// handshake ends.
  [[nodiscard]] std::uint64_t active(EndpointId id) const noexcept {
    const auto i = static_cast<std::size_t>(id);
    return i < cells_.size() ? seen(cells_[i].own_active, cells_[i].others_active) : 0;
  }
  /// active * 256 + closing. Source: ip_vs_dest_conn_overhead() (include/net/ip_vs.h): an inactive
  /// connection costs next to nothing, but decides between equals.
  [[nodiscard]] std::uint64_t overhead(EndpointId id) const noexcept {
    const auto i = static_cast<std::size_t>(id);
    if (i >= cells_.size()) {
      return 0;
    }
    const LoadCell& c = cells_[i];
    return (seen(c.own_active, c.others_active) << 8) + seen(c.own_closing, c.others_closing);
  }

 private:
  [[nodiscard]] std::uint64_t seen(const std::atomic<std::uint32_t>& own,
                                   const std::atomic<std::int32_t>& others) const noexcept {
    const std::int64_t mine = static_cast<std::int64_t>(own.load(std::memory_order_relaxed));
    const std::int64_t sum = mine * workers_ + others.load(std::memory_order_relaxed);
    return static_cast<std::uint64_t>(std::max<std::int64_t>(sum, 0));
  }

  std::span<const LoadCell> cells_;
  std::int64_t workers_ = 1;
};

}  // namespace sluice::core
