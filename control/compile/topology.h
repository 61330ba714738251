#pragma once

#include <cstdint>
#include <vector>

#include "control/compile/slices.h"

namespace sluice::compile {

enum class TopologyMode : std::uint8_t { kNone, kSameNode, kSameZone };

/// The hints of one level (node or zone) over the ready endpoints.
struct HintLevel {
  /// The first ready endpoint without a hint of this level; nullptr: every one has one.
  const MergedEndpoint* without = nullptr;
  bool names_us = false;  ///< at least one names this node or its zone
  [[nodiscard]] bool applies() const { return without == nullptr && names_us; }
};

/// A mode and what led to it.
struct TopologyChoice {
  TopologyMode mode = TopologyMode::kNone;
  HintLevel same_node;
  HintLevel same_zone;
};

/// T-3: the mode for a service port, from its ready endpoints.
[[nodiscard]] TopologyChoice choose_topology(const std::vector<MergedEndpoint>& endpoints,
                                             const NodeContext& node);
/// T-5: whether an endpoint may be used in that mode.
[[nodiscard]] bool available(const MergedEndpoint& endpoint, TopologyMode mode,
                             const NodeContext& node);

}  // namespace sluice::compile
