#pragma once

#include <memory>
#include <string>
#include <vector>

#include "control/compile/compile.h"
#include "dataplane/core/fwd/explain.h"

namespace sluice::compile {

/// What explain() looks at. Everything is borrowed for the call; the Decision of the answer points
/// into `table`.
struct ExplainInput {
  const core::ForwardingTable& table;
  core::Flow flow;
  /// What the table was compiled from; nullptr: unknown, the endpoints then have no reasons.
  const model::ClusterState* state = nullptr;
  const NodeConfig& config;
  Profile profile = Profile::kNftables;
};

/// One endpoint of the service port that was matched.
struct ExplainedEndpoint {
  core::IpAddress address;
  std::uint16_t port = 0;   ///< host order
  bool candidate = false;   ///< may be picked for this flow
  core::Step why;           ///< why it is one or not
  bool masquerade = false;  ///< candidates: the source is translated
  core::ForwardingMode mode = core::ForwardingMode::kByRule;  ///< candidates: what the flow gets
};

struct Explanation {
  core::Decision decision;  ///< equals decide()
  /// Before the endpoints: the flow, the packet procedure, the topology mode.
  std::vector<core::Step> before;
  std::vector<ExplainedEndpoint> endpoints;  ///< all, in the order of the block
  /// After them: scheduler, affinity, source, forwarding mode.
  std::vector<core::Step> after;
};

/// The part of a state that explain() looks at for one Service: it, its slices, one Node.
[[nodiscard]] std::shared_ptr<const model::ClusterState> part_for(const model::ClusterState& state,
                                                                  const model::ObjectName& service,
                                                                  const std::string& node_name);

/// The Service of a block; empty when its printed name (M-3) is none.
[[nodiscard]] model::ObjectName service_of(const core::ServicePort& block);

/// Says what led to the verdict about a flow, by the rule code itself: the packet procedure with a
/// recording trace, and the selection of this one Service run again with one.
/// Thread: any; takes as long as compiling one Service, and a look at each slice of its namespace.
[[nodiscard]] Explanation explain(const ExplainInput& input);

/// "forward to one of 2 endpoints, source kept, mode nat".
[[nodiscard]] std::string verdict_text(const Explanation& explanation);
/// "forward", "reject", "drop", "pass".
[[nodiscard]] std::string_view name_of(core::FlowVerdict verdict) noexcept;

}  // namespace sluice::compile
