#pragma once

#include "test/conformance/kernel_node.h"

namespace sluice::conformance {

/// With the iptables that is backed by nftables.
[[nodiscard]] KernelAdapter iptables_adapter();
/// With the old one, which replaces whole tables.
[[nodiscard]] KernelAdapter iptables_legacy_adapter();

}  // namespace sluice::conformance
