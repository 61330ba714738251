#pragma once

#include <cstdint>
#include <vector>

#include "control/compile/slices.h"

namespace sluice::compile {

enum class TopologyMode : std::uint8_t { kNone, kSameNode, kSameZone };

/// T-3: the mode for a service port, from its ready endpoints.
[[nodiscard]] TopologyMode topology_mode(const std::vector<MergedEndpoint>& endpoints,
                                         const NodeContext& node);
/// T-5: whether an endpoint may be used in that mode.
[[nodiscard]] bool available(const MergedEndpoint& endpoint, TopologyMode mode,
                             const NodeContext& node);

}  // namespace sluice::compile
