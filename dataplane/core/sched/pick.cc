#include "dataplane/core/sched/pick.h"

#include "dataplane/core/sched/dh.h"
#include "dataplane/core/sched/lblc.h"
#include "dataplane/core/sched/lblcr.h"
#include "dataplane/core/sched/lc.h"
#include "dataplane/core/sched/mh.h"
#include "dataplane/core/sched/nq.h"
#include "dataplane/core/sched/random.h"
#include "dataplane/core/sched/rr.h"
#include "dataplane/core/sched/sed.h"
#include "dataplane/core/sched/sh.h"
#include "dataplane/core/sched/wlc.h"
#include "dataplane/core/sched/wrandom.h"
#include "dataplane/core/sched/wrr.h"

namespace sluice::core {
namespace {

std::uint32_t place(const PickInput& input, SchedulerState& state) noexcept {
  switch (input.service.scheduler) {
    case SchedulerKind::kRandom:
      return RandomScheduler::pick(input, state);
    case SchedulerKind::kWrandom:
      return WeightedRandomScheduler::pick(input, state);
    case SchedulerKind::kRr:
      return RoundRobinScheduler::pick(input, state);
    case SchedulerKind::kWrr:
      return WeightedRoundRobinScheduler::pick(input, state);
    case SchedulerKind::kLc:
      return LeastConnectionScheduler::pick(input, state);
    case SchedulerKind::kWlc:
      return WeightedLeastConnectionScheduler::pick(input, state);
    case SchedulerKind::kLblc:
      return LocalityScheduler::pick(input, state);
    case SchedulerKind::kLblcr:
      return ReplicatedLocalityScheduler::pick(input, state);
    case SchedulerKind::kSh:
      return SourceHashScheduler::pick(input, state);
    case SchedulerKind::kDh:
      return DestinationHashScheduler::pick(input, state);
    case SchedulerKind::kSed:
      return ShortestExpectedDelayScheduler::pick(input, state);
    case SchedulerKind::kNq:
      return NeverQueueScheduler::pick(input, state);
    case SchedulerKind::kMh:
      return MaglevScheduler::pick(input, state);
  }
  return Cursor::kFresh;
}

bool has_candidates(const Decision& decision) noexcept {
  if (decision.service == nullptr || decision.eligible.empty()) {
    return false;
  }
  const SchedulerKind kind = decision.service->scheduler;
  if (kind == SchedulerKind::kRandom || kind == SchedulerKind::kRr) {
    return true;
  }
  return decision.plan != nullptr && (!picks_by_hash(kind) || !decision.plan->slots.empty());
}

}  // namespace

EndpointIndex pick(const Decision& decision, const FlowTuple& tuple, std::uint64_t now_ns,
                   SchedulerState& state) noexcept {
  if (!has_candidates(decision)) {
    return EndpointIndex::kNone;
  }
  const bool local = decision.reason == DecisionReason::kLocalPolicy;
  const PickInput input{*decision.service,
                        tuple,
                        decision.eligible,
                        decision.plan,
                        {decision.slot, local},
                        decision.affinity_seconds != 0,
                        static_cast<std::uint32_t>(now_ns / 1'000'000'000)};
  const std::uint32_t chosen = place(input, state);
  return chosen < decision.eligible.size() ? decision.eligible[chosen] : EndpointIndex::kNone;
}

std::optional<EndpointIndex> pick_by_hash(const Decision& decision,
                                          const FlowTuple& tuple) noexcept {
  if (!has_candidates(decision) || !picks_by_hash(decision.service->scheduler)) {
    return std::nullopt;
  }
  const PickInput input{*decision.service,
                        tuple,
                        decision.eligible,
                        decision.plan,
                        {},
                        decision.affinity_seconds != 0,
                        0};
  const bool by_destination = decision.service->scheduler == SchedulerKind::kDh;
  const std::uint32_t chosen =
      by_destination ? place_of_hash(input, client_hash(tuple.dst, 0)) : place_of_client(input);
  return chosen < decision.eligible.size() ? std::optional(decision.eligible[chosen])
                                           : std::nullopt;
}

}  // namespace sluice::core
