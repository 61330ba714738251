#pragma once

#include <cstdint>
#include <span>

#include "dataplane/core/fwd/decide.h"
#include "dataplane/core/sched/scheduler_state.h"

namespace sluice::core {

/// True for the kinds pick() can do. control/compile refuses the others by name, so that none is
/// ever replaced by another in silence.
[[nodiscard]] constexpr bool scheduler_is_built(SchedulerKind kind) noexcept {
  return kind == SchedulerKind::kRandom || kind == SchedulerKind::kRr;
}

/// Chooses an endpoint for a new flow by the service port's scheduler.
/// @param decision verdict kForward
/// @param eligible decision.eligible, or a part of it when some candidates were tried in vain
/// @param hash     full 64-bit flow hash; the high bits must be well mixed
/// @return kNone when `eligible` is empty or the scheduler is not built.
/// Thread: the owner worker of `state`. No allocation.
[[nodiscard]] EndpointIndex pick(const Decision& decision, std::span<const EndpointIndex> eligible,
                                 std::uint64_t hash, SchedulerState& state) noexcept;

}  // namespace sluice::core
