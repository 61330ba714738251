#pragma once

#include "dataplane/core/sched/locality.h"

namespace sluice::core {

/// lblc: locality-based least connection. Flows to one destination address stay on one endpoint,
/// so that its cache serves them, unless it is overloaded (locality.h); then, and the first time,
/// the choice of wlc. Each worker remembers for itself.
/// Source: IPVS scheduler "lblc" (net/netfilter/ipvs/ip_vs_lblc.c).
struct LocalityScheduler {
  static constexpr SchedulerKind kKind = SchedulerKind::kLblc;
  static std::uint32_t pick(const PickInput& input, SchedulerState& state) noexcept {
    LocalityCache::Set& set = set_of(input, state);
    if (set.size != 0) {
      const std::uint32_t known = place_of(input, set.members[0]);
      if (known < size_of(input) && !is_overloaded(input, state.loads(), known)) {
        return known;
      }
      set.size = 0;
    }
    const std::uint32_t place = pick_for_locality(input, state);
    set.add(input.plan->ids[place], input.now_s);
    return place;
  }
};
static_assert(Scheduler<LocalityScheduler>);

}  // namespace sluice::core
