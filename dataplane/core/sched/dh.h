#pragma once

#include "dataplane/core/sched/hash_slots.h"

namespace sluice::core {

/// dh: destination hashing. The destination address (of the cluster IP, VIP or node) names a slot
/// of a static table in which all candidates have equal shares; weights have no part in it (but 0
/// takes no flow). The table is filled as sh's. With session affinity the client's pin comes first,
/// as with any scheduler.
/// Source: IPVS scheduler "dh" (net/netfilter/ipvs/ip_vs_dh.c) for the definition.
struct DestinationHashScheduler {
  static constexpr SchedulerKind kKind = SchedulerKind::kDh;
  static std::uint32_t pick(const PickInput& input, SchedulerState&) noexcept {
    return place_of_hash(input, client_hash(input.tuple.dst, 0));
  }
};
static_assert(Scheduler<DestinationHashScheduler>);

}  // namespace sluice::core
