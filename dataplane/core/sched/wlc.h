#pragma once

#include "dataplane/core/sched/least_loaded.h"

namespace sluice::core {

/// wlc: the candidate with the fewest connections for its weight, closing ones counting 1/256.
/// Source: IPVS scheduler "wlc" (net/netfilter/ipvs/ip_vs_wlc.c).
struct WeightedLeastConnectionScheduler {
  static constexpr SchedulerKind kKind = SchedulerKind::kWlc;
  static std::uint32_t pick(const PickInput& input, SchedulerState& state) noexcept {
    return pick_from(input, state, state.start(input.eligible.size()));
  }
  /// @param start  place that is looked at first, so the winner of a tie.
  static std::uint32_t pick_from(const PickInput& input, SchedulerState& state,
                                 std::uint32_t start) noexcept {
    const LoadView loads = state.loads();
    const EndpointId* ids = input.plan->ids.data();
    const std::uint16_t* weights = input.plan->weights.data();
    return least_loaded(size_of(input), start, [&](std::uint32_t i) {
      return Load{loads.overhead(ids[i]), weights[i]};
    });
  }
};
static_assert(Scheduler<WeightedLeastConnectionScheduler>);

}  // namespace sluice::core
