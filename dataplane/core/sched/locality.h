#pragma once

#include <algorithm>

#include "dataplane/core/sched/wlc.h"

namespace sluice::core {

// What lblc and lblcr have in common.

/// Place of an endpoint among the candidates; n: it is none of them now.
[[nodiscard]] inline std::uint32_t place_of(const PickInput& input, EndpointId id) noexcept {
  const auto& ids = input.plan->ids;
  return static_cast<std::uint32_t>(std::find(ids.begin(), ids.end(), id) - ids.begin());
}

[[nodiscard]] inline Load load_at(const PickInput& input, const LoadView& loads,
                                  std::uint32_t place) noexcept {
  return {loads.overhead(input.plan->ids[place]), input.plan->weights[place]};
}

/// More active connections than its weight, while another has less than half of its own.
/// Source: is_overloaded() of ip_vs_lblc.c.
[[nodiscard]] inline bool is_overloaded(const PickInput& input, const LoadView& loads,
                                        std::uint32_t place) noexcept {
  const PickPlan& plan = *input.plan;
  if (loads.active(plan.ids[place]) <= plan.weights[place]) {
    return false;
  }
  for (std::uint32_t i = 0; i < size_of(input); ++i) {
    if (loads.active(plan.ids[i]) * 2 < plan.weights[i]) {
      return true;
    }
  }
  return false;
}

/// As wlc, but ties go to the first of the list on every worker, so that workers agree.
[[nodiscard]] inline std::uint32_t pick_for_locality(const PickInput& input,
                                                     SchedulerState& state) noexcept {
  return WeightedLeastConnectionScheduler::pick_from(input, state, 0);
}

[[nodiscard]] inline LocalityCache::Set& set_of(const PickInput& input,
                                                SchedulerState& state) noexcept {
  return state.locality().find(input.list.slot, input.list.local, input.tuple.dst, input.now_s);
}

}  // namespace sluice::core
