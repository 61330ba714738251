#pragma once

#include "dataplane/core/sched/sed.h"

namespace sluice::core {

/// nq: never queue. A candidate without active connections, if there is one, else as sed. Among
/// several idle ones the first from the worker's place on, whatever their weights.
/// Source: IPVS scheduler "nq" (net/netfilter/ipvs/ip_vs_nq.c).
struct NeverQueueScheduler {
  static constexpr SchedulerKind kKind = SchedulerKind::kNq;
  static std::uint32_t pick(const PickInput& input, SchedulerState& state) noexcept {
    const std::uint32_t n = size_of(input);
    const LoadView loads = state.loads();
    const EndpointId* ids = input.plan->ids.data();
    const std::uint16_t* weights = input.plan->weights.data();
    // An idle one is as good as weightless work: 0 is less than (active + 1) / weight of any other.
    return least_loaded(n, state.start(n), [&](std::uint32_t i) {
      const std::uint64_t active = loads.active(ids[i]);
      return Load{active == 0 ? 0 : active + 1, weights[i]};
    });
  }
};
static_assert(Scheduler<NeverQueueScheduler>);

}  // namespace sluice::core
