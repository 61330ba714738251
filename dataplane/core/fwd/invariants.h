#pragma once

#include "dataplane/core/fwd/forwarding_table.h"
#include "dataplane/core/sink.h"

namespace sluice::core {

// What holds in every table. A violation is a bug of whoever built it: the builder refuses to freeze
// and the old table stays.

/// One block: lists sorted and inside `endpoints`, flags that follow from the lists (EP-7, EP-10),
/// no address of the other family, no candidate of weight 0, identities unique.
/// Thread: any.
[[nodiscard]] Result<void> check_block(const ServicePort& block);

/// One frontend: the slot exists, its block names that address and port, families agree.
[[nodiscard]] Result<void> check_frontend(const ForwardingTable& table, const FrontendKey& key,
                                          const Frontend& frontend);

/// Every address the block names is in the frontend index (for it or for who won it).
[[nodiscard]] Result<void> check_reachable(const ForwardingTable& table, const ServicePort& block);

/// Sorted and unique lists, families, port range.
[[nodiscard]] Result<void> check_node(const NodePart& node);

/// The whole table; linear in its size. freeze() checks only what changed, tests check all.
[[nodiscard]] Result<void> check_table(const ForwardingTable& table);

/// Calls `visit(key, kind)` for all keys a block claims. Order: cluster IP, VIPs, external IPs, node
/// port.
template <class Visit>
void for_each_claim(const ServicePort& block, Visit&& visit) {
  const auto at = [&](const IpAddress& address) {
    return FrontendKey{address, block.port, block.protocol, false};
  };
  visit(at(block.cluster_ip), FrontendKind::kClusterIp);
  for (const IpAddress& vip : block.load_balancer_vips) {
    visit(at(vip), FrontendKind::kLoadBalancerVip);
  }
  for (const IpAddress& ip : block.external_ips) {
    visit(at(ip), FrontendKind::kExternalIp);
  }
  if (block.node_port != 0) {
    visit(FrontendKey::of_node_port(block.family, block.node_port, block.protocol),
          FrontendKind::kNodePort);
  }
}
/// The same as a list.
[[nodiscard]] std::vector<std::pair<FrontendKey, FrontendKind>> claimed_frontends(
    const ServicePort& block);

}  // namespace sluice::core
