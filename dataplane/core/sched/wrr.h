#pragma once

#include <bit>
#include <span>

#include "dataplane/core/sched/scheduler.h"

namespace sluice::core {

/// wrr: passes over the list, the first for candidates of the greatest weight only, each further
/// one for a greatest common divisor less, until everyone has his turn; then anew. Over one such
/// round each candidate gets exactly weight / gcd flows. Weights 4, 3, 2 of A, B, C give
/// A A B A B C A B C.
///
/// The longest run of one candidate is (heaviest - second) / gcd + 1: that is how IPVS defines it,
/// so 50, 1, 1 sends 50 in a row to the first; wrandom does not (F101).
///
/// Each worker goes through the sequence by itself and starts at another pass and place of it. A
/// pick looks at each candidate at most twice, 16 at a time.
/// Source: IPVS scheduler "wrr" (net/netfilter/ipvs/ip_vs_wrr.c).
struct WeightedRoundRobinScheduler {
  static constexpr SchedulerKind kKind = SchedulerKind::kWrr;

  static std::uint32_t pick(const PickInput& input, SchedulerState& state) noexcept {
    const std::span<const std::uint16_t> weights(input.plan->weights);
    const auto n = static_cast<std::uint32_t>(weights.size());
    const std::uint32_t heaviest = input.plan->heaviest;
    const std::uint32_t step = input.plan->step;
    Cursor& cursor = state.cursor(input.list);
    if (cursor.place == Cursor::kFresh) {
      cursor = {state.start(n), heaviest - step * state.start(heaviest / step)};
    }
    // A list that changed: levels above its heaviest hold nobody, those of another step are as
    // good as any (F28).
    std::uint32_t level = cursor.level < heaviest ? cursor.level : heaviest;
    std::uint32_t place = next_of(weights, cursor.place, level);
    if (place == n) {
      level = level > step ? level - step : heaviest;
      place = next_of(weights, 0, level);
    }
    cursor = {place + 1, level};
    return place;
  }

 private:
  /// First place from `from` on whose weight is enough; n: none.
  static std::uint32_t next_of(std::span<const std::uint16_t> weights, std::uint32_t from,
                               std::uint32_t level) noexcept {
    constexpr std::uint32_t kLanes = 16;
    const auto n = static_cast<std::uint32_t>(weights.size());
    const auto enough = static_cast<std::uint16_t>(level);
    std::uint32_t i = from;
    for (; i + kLanes <= n; i += kLanes) {
      std::uint16_t any = 0;
      for (std::uint32_t k = 0; k < kLanes; ++k) {
        any = static_cast<std::uint16_t>(any | (weights[i + k] >= enough ? 1 : 0));
      }
      if (any != 0) {
        break;
      }
    }
    while (i < n && weights[i] < enough) {
      ++i;
    }
    return i < n ? i : n;
  }
};
static_assert(Scheduler<WeightedRoundRobinScheduler>);

}  // namespace sluice::core
