#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "control/compile/frontends.h"
#include "control/compile/service_blocks.h"
#include "control/compile/slice_index.h"
#include "dataplane/core/fwd/parallel.h"
#include "dataplane/core/fwd/table_builder.h"

namespace sluice::compile {

// Theory of operation
//
// Nearly all of a compile looks at one Service alone and can be done for many at once. What they
// share are the ids and the table that is made: ids are given, and results handed over, in the
// order of the names, so that the outcome does not depend on who was faster. A Service for which
// ids run out is rare; it is computed again with the registry at hand, which knows what to refuse.

/// What the compiler remembers of a block in the table: enough to take it out again.
struct Installed {
  core::ServiceSlot slot = core::ServiceSlot::kNone;
  std::vector<std::pair<core::FrontendKey, Claim>> claims;  ///< Claim::service is not set
  core::IpAddress cluster_ip;
  std::vector<core::IpAddress> announced;
};

/// A block on its way into the table.
struct ReadyBlock {
  core::TableBuilder::Prepared prepared;
  Installed installed;
  std::vector<core::EndpointId> departed;  ///< of the block in force, not of this one
};

/// One Service to compute.
struct ServiceJob {
  const model::ObjectName* name = nullptr;  ///< outlives the job
  const model::Service* service = nullptr;  ///< found by compute(); nullptr: it is no more
  ServiceResult result;                     ///< its blocks are moved from
  std::vector<ReadyBlock> blocks;
};

/// What jobs look at; outlives them.
struct JobInputs {
  const model::ClusterState& state;
  const SliceIndex& slices;
  const NodeContext& context;
  const core::ForwardingTable& previous;
};

/// Computes Services and hands each to `install`.
/// @param names  sorted. @param ids  asked in the order of the names.
/// @param install  called in the order of the names, one at a time, never while `ids` is asked.
void compute(const std::vector<const model::ObjectName*>& names, const JobInputs& inputs,
             IdRegistry& ids, const core::BatchLine& line,
             const std::function<void(ServiceJob&)>& install);

}  // namespace sluice::compile
