#pragma once

#include "dataplane/core/sched/least_loaded.h"

namespace sluice::core {

/// lc: the candidate with the fewest connections, closing ones counting 1/256 (load.h). Weights
/// have no part in it (but 0 takes no flow).
/// Source: IPVS scheduler "lc" (net/netfilter/ipvs/ip_vs_lc.c).
struct LeastConnectionScheduler {
  static constexpr SchedulerKind kKind = SchedulerKind::kLc;
  static std::uint32_t pick(const PickInput& input, SchedulerState& state) noexcept {
    const std::uint32_t n = size_of(input);
    const LoadView loads = state.loads();
    const EndpointId* ids = input.plan->ids.data();
    return least_loaded(n, state.start(n), [&](std::uint32_t i) {
      return Load{loads.overhead(ids[i]), 1};
    });
  }
};
static_assert(Scheduler<LeastConnectionScheduler>);

}  // namespace sluice::core
