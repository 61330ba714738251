#pragma once

#include "dataplane/core/sched/scheduler.h"

namespace sluice::core {

/// rr: the candidates in turn. Each worker has its own turn per service port and starts at another
/// place, worker w of W at w/W of the list: were all to start at the first candidate, the head of
/// the list would get the first W flows. Weights have no part in it (but 0 takes no flow).
/// Source: IPVS scheduler "rr" (net/netfilter/ipvs/ip_vs_rr.c) for the definition.
struct RoundRobinScheduler {
  static constexpr SchedulerKind kKind = SchedulerKind::kRr;
  static EndpointIndex pick(const PickInput& input, SchedulerState& state) noexcept {
    const std::uint64_t n = input.eligible.size();
    const std::uint64_t start = n * state.worker() / state.workers();
    const std::uint64_t turn = state.cursor(input.slot)++;
    return input.eligible[static_cast<std::size_t>((start + turn) % n)];
  }
};
static_assert(Scheduler<RoundRobinScheduler>);

}  // namespace sluice::core
