#pragma once

#include "dataplane/core/fwd/forwarding_table.h"

namespace sluice::compile {

/// P-5 with design section 5: external traffic with eTP Cluster is masqueraded, unless the Service
/// names a mode of its own; fullnat always is.
[[nodiscard]] bool masquerades_external(core::TrafficPolicy external_policy,
                                        core::ForwardingMode mode);

}  // namespace sluice::compile
