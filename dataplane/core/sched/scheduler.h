#pragma once

#include <concepts>
#include <cstdint>
#include <span>

#include "dataplane/core/fwd/forwarding_table.h"
#include "dataplane/core/sched/scheduler_state.h"

namespace sluice::core {

/// What a scheduler may look at for one new flow.
struct PickInput {
  ServiceSlot slot = ServiceSlot::kNone;
  const ServicePort& service;
  /// Candidates in sorted order, not empty. None has weight 0 (select.cc leaves those out).
  std::span<const EndpointIndex> eligible;
  std::uint64_t hash = 0;  ///< of the flow, well mixed; of the client address when affinity is on
};

/// A scheduler: one type, one file, no virtual call. `pick` chooses one of `eligible`; it is called
/// by the owner worker for every new flow and must not allocate.
template <class S>
concept Scheduler = requires(const PickInput& input, SchedulerState& state) {
  { S::kKind } -> std::convertible_to<SchedulerKind>;
  { S::pick(input, state) } noexcept -> std::same_as<EndpointIndex>;
};

}  // namespace sluice::core
