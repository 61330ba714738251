// Topology hints on the node: rules T-1..T-6 (section 7).
#include "control/compile/topology.h"

#include <algorithm>

namespace sluice::compile {
namespace {

bool names(const std::vector<std::string>& hints, const std::string& wanted) {
  return std::find(hints.begin(), hints.end(), wanted) != hints.end();
}

/// Whether every ready endpoint has a hint of this level and at least one names us.
struct Level {
  bool complete = true;
  bool names_us = false;
  void add(const std::vector<std::string>& hints, const std::string& us) {
    complete = complete && !hints.empty();
    names_us = names_us || names(hints, us);
  }
  [[nodiscard]] bool applies() const { return complete && names_us; }
};

}  // namespace

TopologyMode topology_mode(const std::vector<MergedEndpoint>& endpoints, const NodeContext& node) {
  if (node.profile == Profile::kHns) {  // T-7: Windows never consults hints
    return TopologyMode::kNone;
  }
  Level same_node;
  Level same_zone;
  for (const MergedEndpoint& e : endpoints) {
    if (e.conditions.ready) {
      same_node.add(e.source->for_nodes, node.node_name);
      same_zone.add(e.source->for_zones, node.zone);
    }
  }
  if (same_node.applies()) {
    return TopologyMode::kSameNode;
  }
  return same_zone.applies() ? TopologyMode::kSameZone : TopologyMode::kNone;
}

bool available(const MergedEndpoint& endpoint, TopologyMode mode, const NodeContext& node) {
  switch (mode) {
    case TopologyMode::kNone:
      return true;
    case TopologyMode::kSameNode:
      return names(endpoint.source->for_nodes, node.node_name);
    case TopologyMode::kSameZone:
      return names(endpoint.source->for_zones, node.zone);
  }
  return true;
}

}  // namespace sluice::compile
