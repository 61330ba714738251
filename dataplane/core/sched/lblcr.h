#pragma once

#include "dataplane/core/sched/locality.h"

namespace sluice::core {

/// lblcr: locality-based least connection with replication. Flows to one destination address go to
/// the least loaded of a set of endpoints. When that one is overloaded (locality.h), the choice of
/// wlc joins the set; a set of more than one that has not changed for 24 hours loses its most
/// loaded member. Each worker remembers for itself; a full set (16) gives its most loaded member up
/// for the new one.
/// Source: IPVS scheduler "lblcr" (net/netfilter/ipvs/ip_vs_lblcr.c).
struct ReplicatedLocalityScheduler {
  static constexpr SchedulerKind kKind = SchedulerKind::kLblcr;
  static std::uint32_t pick(const PickInput& input, SchedulerState& state) noexcept {
    const LoadView loads = state.loads();
    LocalityCache::Set& set = set_of(input, state);
    forget_absent(input, set);
    const std::uint32_t least = least_of(input, loads, set);
    if (set.size > 1 && input.now_s - set.changed_s > LocalityCache::kForgetSeconds) {
      drop_most_loaded(input, loads, set);
    }
    if (least < size_of(input) && !is_overloaded(input, loads, least)) {
      return least;
    }
    const std::uint32_t place = pick_for_locality(input, state);
    const EndpointId id = input.plan->ids[place];
    const auto members = set.all();
    if (std::find(members.begin(), members.end(), id) == members.end()) {
      if (set.size == LocalityCache::kMembers) {
        drop_most_loaded(input, loads, set);
      }
      set.add(id, input.now_s);
    }
    return place;
  }

 private:
  static void forget_absent(const PickInput& input, LocalityCache::Set& set) noexcept {
    for (std::size_t m = set.size; m-- != 0;) {
      if (place_of(input, set.members[m]) == size_of(input)) {
        set.remove_at(m, input.now_s);
      }
    }
  }

  /// n: the set is empty.
  static std::uint32_t least_of(const PickInput& input, const LoadView& loads,
                                const LocalityCache::Set& set) noexcept {
    std::uint32_t best = size_of(input);
    for (const EndpointId id : set.all()) {
      const std::uint32_t place = place_of(input, id);
      if (best == size_of(input) ||
          load_at(input, loads, place).less_than(load_at(input, loads, best))) {
        best = place;
      }
    }
    return best;
  }

  static void drop_most_loaded(const PickInput& input, const LoadView& loads,
                               LocalityCache::Set& set) noexcept {
    std::size_t most = 0;
    for (std::size_t m = 1; m < set.size; ++m) {
      const Load a = load_at(input, loads, place_of(input, set.members[most]));
      const Load b = load_at(input, loads, place_of(input, set.members[m]));
      most = a.less_than(b) ? m : most;
    }
    set.remove_at(most, input.now_s);
  }
};
static_assert(Scheduler<ReplicatedLocalityScheduler>);

}  // namespace sluice::core
