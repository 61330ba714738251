#pragma once

#include <string>
#include <vector>

#include "dataplane/core/net/address.h"

namespace sluice::compile {

/// NP-12 [1.37]: families for which the nftables mode serves TCP node ports on loopback by a
/// userspace proxy. A zero CIDR and `all` are not an explicit wish for loopback.
/// @param gate   KubeProxyNFTablesLocalhostNodePorts
/// @param values node-port addresses as configured: CIDRs, `primary`, `localhost`, `all`
[[nodiscard]] std::vector<core::Family> localhost_proxy_families(
    bool gate, const std::vector<std::string>& values);

}  // namespace sluice::compile
