#pragma once

#include <vector>

#include "control/compile/compile.h"
#include "control/compile/id_registry.h"
#include "control/compile/node_context.h"
#include "control/compile/select.h"

namespace sluice::compile {

/// One block with its key and place.
struct PlacedBlock {
  ServicePortKey key;
  core::ServiceSlot slot = core::ServiceSlot::kNone;
  core::ServicePort block;
};

/// What one Service comes to on this node.
struct ServiceResult {
  std::vector<PlacedBlock> blocks;
  std::vector<HealthPort> health_ports;
  std::vector<ReportLine> lines;
  bool short_of_ids = false;  ///< something was refused for want of a slot or an id
};

/// Written by compile_service() for one service port and family, for explain.
struct ServiceTrace {
  ServicePortKey wanted;
  std::vector<MergedEndpoint> merged;  ///< in the order of the block's endpoints
  SelectionRecord selection;
  core::ServicePort block;  ///< its endpoint ids are of the registry that was given, if any
  bool found = false;       ///< the Service has this port
};

/// Applies the rules of sections 2..14 to one Service and its slices.
/// @param slices sorted by name
/// @param ids    asked for slots and endpoint ids; otherwise the function is pure. nullptr: all
///               stay kNone, for give_ids()
/// @param trace  nullptr: nobody listens
[[nodiscard]] ServiceResult compile_service(const model::Service& service,
                                            const std::vector<const model::EndpointSlice*>& slices,
                                            const NodeContext& node, IdRegistry* ids,
                                            ServiceTrace* trace = nullptr);

/// Gives a result that was computed without ids its slots and endpoint ids. @return false: there
/// are not enough, compute it again with the registry.
[[nodiscard]] bool give_ids(ServiceResult& result, IdRegistry& ids);

}  // namespace sluice::compile
