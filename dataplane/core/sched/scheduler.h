#pragma once

#include <concepts>
#include <cstdint>
#include <span>

#include "dataplane/core/fwd/forwarding_table.h"
#include "dataplane/core/net/flow_key.h"
#include "dataplane/core/sched/pick_plan.h"
#include "dataplane/core/sched/scheduler_state.h"

namespace sluice::core {

/// What a scheduler may look at for one new flow.
struct PickInput {
  const ServicePort& service;
  const FlowTuple& tuple;  ///< as it arrived
  /// Candidates in sorted order, not empty. None has weight 0 (select.cc leaves those out).
  std::span<const EndpointIndex> eligible;
  /// Of `eligible`, filled for the Service's scheduler; null for random and rr.
  const PickPlan* plan;
  ListRef list;              ///< names `eligible` in the state
  bool client_only = false;  ///< session affinity: only the client address may decide
  std::uint32_t now_s = 0;   ///< monotonic seconds, wraps
};

/// A scheduler: one type, one file, no virtual call. `pick` chooses a place in `eligible`; it is
/// called by the owner worker for every new flow and must not allocate.
template <class S>
concept Scheduler = requires(const PickInput& input, SchedulerState& state) {
  { S::kKind } -> std::convertible_to<SchedulerKind>;
  { S::pick(input, state) }
  noexcept->std::same_as<std::uint32_t>;
};

}  // namespace sluice::core
