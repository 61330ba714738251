#pragma once

#include <cstdint>

#include "control/compile/slices.h"

namespace sluice::compile {

/// H-2: distinct addresses of local ready endpoints over all ports of the Service.
[[nodiscard]] std::uint32_t count_local_endpoints(const MergedPorts& ports);

/// S-7. @param local the Service's external policy is Local (S-5). @return 0: none.
[[nodiscard]] std::uint16_t health_check_node_port(const model::Service& service, bool local,
                                                   Reporter& report);

}  // namespace sluice::compile
