#pragma once

#include "dataplane/core/sched/scheduler.h"

namespace sluice::core {

/// random: every candidate is equally likely for every new flow; weights have no part in it (but 0
/// takes none). The default. Independent of the flow's hash, so that a client cannot choose.
/// Source: rule book EP-9.
struct RandomScheduler {
  static constexpr SchedulerKind kKind = SchedulerKind::kRandom;
  static std::uint32_t pick(const PickInput& input, SchedulerState& state) noexcept {
    return state.next_below(static_cast<std::uint32_t>(input.eligible.size()));
  }
};
static_assert(Scheduler<RandomScheduler>);

}  // namespace sluice::core
