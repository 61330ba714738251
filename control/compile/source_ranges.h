#pragma once

#include <optional>
#include <vector>

#include "control/compile/reporter.h"

namespace sluice::compile {

/// Sources that may use the VIPs of one family; empty: all.
/// @param vips load-balancer VIPs of that family, @param node_ip this node's address of it
[[nodiscard]] std::vector<core::Cidr> allowed_sources(
    const model::Service& service, core::Family family, const std::vector<core::IpAddress>& vips,
    const std::optional<core::IpAddress>& node_ip);

/// Reports entries that cannot be parsed.
void check_source_ranges(const model::Service& service, Reporter& report);

}  // namespace sluice::compile
