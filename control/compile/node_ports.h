#pragma once

#include <vector>

#include "control/compile/node_context.h"

namespace sluice::compile {

/// The configured list after NP-1 and NP-2: CIDRs of both families.
struct NodePortRanges {
  std::vector<core::Cidr> cidrs;
};

/// Expands "primary" and parses CIDRs; an entry that is neither is reported and left out.
[[nodiscard]] NodePortRanges node_port_ranges(const NodeConfig& config, const NodeContext& context,
                                              Reporter& report);

/// NP-3..NP-6 for one family. @param local local addresses without loopback, sorted.
[[nodiscard]] core::NodePortAddresses node_port_addresses(
    const NodePortRanges& ranges, core::Family family, const std::vector<core::IpAddress>& local);

}  // namespace sluice::compile
