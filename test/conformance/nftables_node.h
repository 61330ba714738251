#pragma once

#include "test/conformance/kernel_node.h"

namespace sluice::conformance {

[[nodiscard]] KernelAdapter nftables_adapter();

}  // namespace sluice::conformance
