#include "dataplane/core/sched/pick.h"

#include "dataplane/core/sched/random.h"
#include "dataplane/core/sched/rr.h"

namespace sluice::core {

EndpointIndex pick(const Decision& decision, std::span<const EndpointIndex> eligible,
                   std::uint64_t hash, SchedulerState& state) noexcept {
  if (eligible.empty() || decision.service == nullptr) {
    return EndpointIndex::kNone;
  }
  const PickInput input{decision.slot, *decision.service, eligible, hash};
  switch (decision.service->scheduler) {
    case SchedulerKind::kRandom:
      return RandomScheduler::pick(input, state);
    case SchedulerKind::kRr:
      return RoundRobinScheduler::pick(input, state);
    default:
      return EndpointIndex::kNone;
  }
}

}  // namespace sluice::core
