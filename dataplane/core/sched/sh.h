#pragma once

#include "dataplane/core/sched/hash_slots.h"

namespace sluice::core {

/// sh: source hashing. The client address, with the flag sh-port also its port, names a slot of a
/// static table in which each candidate has slots by its weight. sh-fallback as mh-fallback.
///
/// IPVS fills its 256 buckets in the order of the list, so that one endpoint more or less moves
/// nearly every client and weights are kept roughly; here the table is mh's, which keeps them to
/// a slot of 16381 and moves few (F18, F30).
/// Source: IPVS scheduler "sh" (net/netfilter/ipvs/ip_vs_sh.c) for the definition and the flags.
struct SourceHashScheduler {
  static constexpr SchedulerKind kKind = SchedulerKind::kSh;
  static std::uint32_t pick(const PickInput& input, SchedulerState&) noexcept {
    return place_of_client(input);
  }
};
static_assert(Scheduler<SourceHashScheduler>);

}  // namespace sluice::core
