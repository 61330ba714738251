#pragma once

#include <vector>

#include "control/compile/slices.h"

namespace sluice::compile {

/// Fills the lists and flags of `block` (cluster, local, all_reachable, has_*), whose policies and
/// endpoints are set already. `merged[i]` is where `block.endpoints[i]` came from. An endpoint of
/// weight 0 is in no list, as if it were absent.
void select_endpoints(const std::vector<MergedEndpoint>& merged, const NodeContext& node,
                      core::ServicePort& block);

}  // namespace sluice::compile
