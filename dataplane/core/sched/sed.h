#pragma once

#include "dataplane/core/sched/least_loaded.h"

namespace sluice::core {

/// sed: the shortest expected delay, the least (active connections + 1) / weight: what the load
/// would be with the new flow. Closing connections do not count.
/// Source: IPVS scheduler "sed" (net/netfilter/ipvs/ip_vs_sed.c).
struct ShortestExpectedDelayScheduler {
  static constexpr SchedulerKind kKind = SchedulerKind::kSed;
  static std::uint32_t pick(const PickInput& input, SchedulerState& state) noexcept {
    const std::uint32_t n = size_of(input);
    const LoadView loads = state.loads();
    const EndpointId* ids = input.plan->ids.data();
    const std::uint16_t* weights = input.plan->weights.data();
    return least_loaded(n, state.start(n), [&](std::uint32_t i) {
      return Load{loads.active(ids[i]) + 1, weights[i]};
    });
  }
};
static_assert(Scheduler<ShortestExpectedDelayScheduler>);

}  // namespace sluice::core
