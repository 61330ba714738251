// Masquerading of external traffic: rules P-5, Q-2, Q-3 (section 11). What depends on the source of
// a flow (P-2, P-9, host-local sources) is core::decide().
#include "control/compile/masquerade.h"

namespace sluice::compile {

bool masquerades_external(core::TrafficPolicy external_policy, core::ForwardingMode mode) {
  switch (mode) {
    case core::ForwardingMode::kByRule:
      return external_policy == core::TrafficPolicy::kCluster;
    case core::ForwardingMode::kFullNat:
      return true;
    case core::ForwardingMode::kNat:
    case core::ForwardingMode::kDr:
    case core::ForwardingMode::kIpip:
      return false;
  }
  return false;
}

}  // namespace sluice::compile
