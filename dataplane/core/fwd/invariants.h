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

/// All keys a block claims, with the kind of each. Order: cluster IP, VIPs, external IPs, node port.
[[nodiscard]] std::vector<std::pair<FrontendKey, FrontendKind>> claimed_frontends(
    const ServicePort& block);

}  // namespace sluice::core
