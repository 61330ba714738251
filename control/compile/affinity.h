#pragma once

#include <cstdint>

#include "control/compile/reporter.h"

namespace sluice::compile {

/// @return time-out of the Service's ClientIP affinity in seconds, 0: none.
[[nodiscard]] std::uint32_t affinity_seconds(const model::Service& service, Reporter& report);

}  // namespace sluice::compile
