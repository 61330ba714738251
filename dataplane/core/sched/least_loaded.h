#pragma once

#include <cstdint>

#include "dataplane/core/sched/scheduler.h"

namespace sluice::core {

/// A load to compare: `amount` connections on `weight`.
struct Load {
  std::uint64_t amount = 0;
  std::uint64_t weight = 1;
  /// Compares amount / weight without a division. Exact: amounts stay below 2^41 (16 million
  /// connections a worker, 128 workers, times 256), weights below 2^16 (F29).
  [[nodiscard]] bool less_than(const Load& other) const noexcept {
    return amount * other.weight < other.amount * weight;
  }
};

/// The place with the least load. Among equals the first from `start` on, once round the list: each
/// worker starts elsewhere, or all would send their next flow to the same one of many idle
/// endpoints. With one worker that is the first of the list, as in IPVS.
/// @param load  (place) -> Load
template <class LoadOf>
[[nodiscard]] std::uint32_t least_loaded(std::uint32_t n, std::uint32_t start,
                                         LoadOf&& load) noexcept {
  std::uint32_t best = start;
  Load least = load(start);
  for (std::uint32_t i = start + 1; i < n; ++i) {
    const Load l = load(i);
    if (l.less_than(least)) {
      least = l;
      best = i;
    }
  }
  for (std::uint32_t i = 0; i < start; ++i) {
    const Load l = load(i);
    if (l.less_than(least)) {
      least = l;
      best = i;
    }
  }
  return best;
}

[[nodiscard]] inline std::uint32_t size_of(const PickInput& input) noexcept {
  return static_cast<std::uint32_t>(input.eligible.size());
}

}  // namespace sluice::core
