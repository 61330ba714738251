#pragma once

#include "dataplane/core/sched/scheduler.h"

namespace sluice::core {

/// wrandom: every new flow goes to a candidate with probability weight / sum of weights, whatever
/// came before. One random number and one column of an alias table, whatever the number of
/// candidates and their weights.
/// Source: A. J. Walker, "An efficient method for generating discrete random variables with general
/// distributions", ACM TOMS 3 (1977); the table is made as in Vose 1991 (pick_plan.cc).
struct WeightedRandomScheduler {
  static constexpr SchedulerKind kKind = SchedulerKind::kWrandom;
  static std::uint32_t pick(const PickInput& input, SchedulerState& state) noexcept {
    const auto n = static_cast<std::uint32_t>(input.eligible.size());
    const std::uint64_t random = state.next_random();
    const auto column = static_cast<std::uint32_t>((random >> 32) * n >> 32);
    const AliasColumn& at = input.plan->alias[column];
    return static_cast<std::uint32_t>(random) < at.keep ? column : at.other;
  }
};
static_assert(Scheduler<WeightedRandomScheduler>);

}  // namespace sluice::core
