#pragma once

#include <optional>
#include <string>
#include <vector>

#include "control/compile/compile.h"
#include "control/compile/counted_addresses.h"
#include "control/compile/reporter.h"

namespace sluice::compile {

/// What the rules of one Service need to know about this node. When it changes, every Service is
/// computed again; everything else about the node is in the table's node part only.
struct NodeContext {
  std::string node_name;
  std::string zone;                        ///< "" : none
  std::optional<core::IpAddress> node_ip4;
  std::optional<core::IpAddress> node_ip6;
  bool allow_external_ips = true;          ///< S-2 gate
  core::SchedulerKind default_scheduler = core::SchedulerKind::kRandom;
  Profile profile = Profile::kNftables;
  std::vector<core::Cidr> announce;
  bool operator==(const NodeContext&) const = default;
  [[nodiscard]] const std::optional<core::IpAddress>& node_ip(core::Family family) const {
    return family == core::Family::kIpv4 ? node_ip4 : node_ip6;
  }
};

/// Completes the configuration from the Node object: zone label, InternalIP before ExternalIP, first
/// of each family (NP-2). The configuration wins. @param node nullptr: unknown to the cluster.
[[nodiscard]] NodeContext resolve_node(const NodeConfig& config, const model::Node* node,
                                       Profile profile);

/// Address lists that depend on Services.
struct ServiceAddresses {
  CountedAddresses& cluster_ips;
  CountedAddresses& announced;
};

/// The node part of the table.
[[nodiscard]] core::NodePart build_node_part(const NodeConfig& config, const NodeContext& context,
                                             const model::ClusterState& state,
                                             const HostState& host,
                                             const ServiceAddresses& addresses,
                                             Reporter& report);

}  // namespace sluice::compile
