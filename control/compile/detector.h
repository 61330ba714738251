#pragma once

#include "control/compile/compile.h"

namespace sluice::compile {

/// The local-traffic detector of one family; kNone when the mode has no CIDR of it.
/// @param node this node's object, nullptr: unknown.
[[nodiscard]] core::LocalDetector resolve_detector(const NodeConfig& config,
                                                   const model::Node* node, core::Family family);

}  // namespace sluice::compile
