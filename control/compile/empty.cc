// Nothing to send to: the table of section 9 (N-1..N-3).
#include "control/compile/empty.h"

namespace sluice::compile {

void set_empty_verdicts(Profile profile, core::ServicePort& block) {
  // No endpoint anywhere: the client shall know at once. Endpoints elsewhere, but policy Local: the
  // balancer avoids this node, and a refusal would be reported to the client. IPVS never drops
  // (N-6).
  const auto verdict = block.has_any && profile != Profile::kIpvs ? core::EmptyVerdict::kDrop
                                                                  : core::EmptyVerdict::kReject;
  block.internal_when_empty = verdict;
  block.external_when_empty = verdict;
}

}  // namespace sluice::compile
