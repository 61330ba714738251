#pragma once

#include "dataplane/core/sched/scheduler.h"

namespace sluice::core {

/// rr: the candidates in turn. Each worker has its own turn per candidate list and starts at
/// another place, worker w of W at w/W of the list: were all to start at the first candidate, the
/// head of the list would get the first W flows. Weights have no part in it (but 0 takes no flow).
/// When the list changes the turn goes on at the same place, or at the first if that is gone.
/// Source: IPVS scheduler "rr" (net/netfilter/ipvs/ip_vs_rr.c) for the definition.
struct RoundRobinScheduler {
  static constexpr SchedulerKind kKind = SchedulerKind::kRr;
  static std::uint32_t pick(const PickInput& input, SchedulerState& state) noexcept {
    const std::size_t n = input.eligible.size();
    Cursor& cursor = state.cursor(input.list);
    std::uint32_t place = cursor.place;
    if (place >= n) {
      place = place == Cursor::kFresh ? state.start(n) : 0;
    }
    cursor.place = place + 1;
    return place;
  }
};
static_assert(Scheduler<RoundRobinScheduler>);

}  // namespace sluice::core
