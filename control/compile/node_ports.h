#pragma once

#include <vector>

#include "control/compile/node_context.h"

namespace sluice::compile {

/// The configured list after NP-1 and NP-2: CIDRs of both families.
struct NodePortRanges {
  std::vector<core::Cidr> cidrs;
  bool loopback4 = false;  ///< NP-6: iptables brings packets for 127.0.0.1 to endpoints, too
};

/// Expands "primary" and parses CIDRs; an entry that is neither is reported and left out.
[[nodiscard]] NodePortRanges node_port_ranges(const NodeConfig& config, const NodeContext& context,
                                              Reporter& report);

/// NP-3..NP-6 for one family. @param local local addresses without loopback, sorted. The answer has
/// 127.0.0.1 where a list names it and it can be served.
[[nodiscard]] core::NodePortAddresses node_port_addresses(
    const NodePortRanges& ranges, core::Family family, const std::vector<core::IpAddress>& local);

}  // namespace sluice::compile
