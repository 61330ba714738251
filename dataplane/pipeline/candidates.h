#pragma once

// Which endpoints a new flow may get beside the one its scheduler chose.

#include <algorithm>
#include <cstddef>

#include "dataplane/core/conn/entry.h"
#include "dataplane/core/fwd/decide.h"
#include "dataplane/core/sched/pick_plan.h"

namespace sluice::pipeline {

/// The choice is kept even where another candidate would be easier: affinity, and hashing without
/// fallback.
[[nodiscard]] inline bool keeps_choice(const core::Decision& decision) noexcept {
  return decision.affinity_seconds != 0 ||
         (core::picks_by_hash(decision.service->scheduler) &&
          (decision.service->scheduler_flags & core::kSchedFallback) == 0);
}

/// How many others are tried when a candidate cannot take a flow.
[[nodiscard]] inline std::size_t other_candidates(const core::Decision& decision) noexcept {
  constexpr std::size_t kTries = 8;
  return keeps_choice(decision) ? 0 : std::min(decision.eligible.size(), kTries);
}

/// The n-th of them; `first` itself may be among them.
[[nodiscard]] inline core::EndpointIndex candidate_after(const core::Decision& decision,
                                                         core::EndpointIndex first,
                                                         std::size_t n) noexcept {
  const auto from = static_cast<std::size_t>(first);  // any place will do
  return decision.eligible[(from + n) % decision.eligible.size()];
}

/// Where hashing alone picks the endpoint and no answer comes by, a flow can do without an entry: it
/// goes to the same endpoint with every packet. So it does when the table is full, and because of
/// that also when a packet in the middle of a connection has none.
[[nodiscard]] inline bool needs_no_entry(const core::Decision& decision) noexcept {
  return !core::sees_replies(core::asked_mode(decision)) && decision.affinity_seconds == 0 &&
         core::picks_by_hash(decision.service->scheduler);
}

}  // namespace sluice::pipeline
