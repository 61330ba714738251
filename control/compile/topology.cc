// Topology hints on the node: rules T-1..T-6 (section 7).
#include "control/compile/topology.h"

#include <algorithm>

namespace sluice::compile {
namespace {

bool names(const std::vector<std::string>& hints, const std::string& wanted) {
  return std::find(hints.begin(), hints.end(), wanted) != hints.end();
}

void add(HintLevel& level, const MergedEndpoint& endpoint, const std::vector<std::string>& hints,
         const std::string& us) {
  if (hints.empty() && level.without == nullptr) {
    level.without = &endpoint;
  }
  level.names_us = level.names_us || names(hints, us);
}

}  // namespace

TopologyChoice choose_topology(const std::vector<MergedEndpoint>& endpoints,
                               const NodeContext& node) {
  TopologyChoice choice;
  if (node.profile == Profile::kHns) {  // T-7: Windows never consults hints
    return choice;
  }
  for (const MergedEndpoint& e : endpoints) {
    if (e.conditions.ready) {
      add(choice.same_node, e, e.source->for_nodes, node.node_name);
      add(choice.same_zone, e, e.source->for_zones, node.zone);
    }
  }
  if (choice.same_node.applies()) {
    choice.mode = TopologyMode::kSameNode;
  } else if (choice.same_zone.applies()) {
    choice.mode = TopologyMode::kSameZone;
  }
  return choice;
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
