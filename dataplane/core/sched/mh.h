#pragma once

#include "dataplane/core/sched/hash_slots.h"

namespace sluice::core {

/// mh: Maglev hashing of the client address, with the flag mh-port also of its port. Shares follow
/// the weights to a slot; the same flow gets the same endpoint on every node, and an endpoint that
/// comes or goes moves few flows of the others (maglev.h).
///
/// With the flag mh-fallback the table is not filled anew when an endpoint stops taking flows (not
/// ready, weight 0): only its own slots go to others, by hashing again, and come back with it. In
/// IPVS that happens at each pick, and without the flag the flow is refused; here an endpoint that
/// takes no flows has no slot either way.
/// Source: IPVS scheduler "mh" (net/netfilter/ipvs/ip_vs_mh.c) for the definition, flags and
/// fallback; Maglev paper for the table.
struct MaglevScheduler {
  static constexpr SchedulerKind kKind = SchedulerKind::kMh;
  static std::uint32_t pick(const PickInput& input, SchedulerState&) noexcept {
    return place_of_client(input);
  }
};
static_assert(Scheduler<MaglevScheduler>);

}  // namespace sluice::core
