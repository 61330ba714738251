#pragma once

#include <cstdint>
#include <optional>

#include "dataplane/core/fwd/decide.h"
#include "dataplane/core/sched/pick_plan.h"
#include "dataplane/core/sched/scheduler_state.h"

namespace sluice::core {

/// Chooses an endpoint for a new flow by the service port's scheduler.
/// @param decision verdict kForward, of a table made by TableBuilder
/// @param tuple    of the flow, as it arrived
/// @param now_ns   monotonic
/// @return kNone when there is no candidate.
/// Thread: the owner worker of `state`. No allocation.
[[nodiscard]] EndpointIndex pick(const Decision& decision, const FlowTuple& tuple,
                                 std::uint64_t now_ns, SchedulerState& state) noexcept;

/// The choice of mh, sh or dh, which needs no state: the same at any time on any node.
/// @return nullopt for other schedulers, and when there is no candidate.
/// Thread: any.
[[nodiscard]] std::optional<EndpointIndex> pick_by_hash(const Decision& decision,
                                                        const FlowTuple& tuple) noexcept;

}  // namespace sluice::core
