#pragma once

#include <vector>

#include "dataplane/core/sink.h"

namespace sluice::core {

/// What a service port asks for and a kernel adapter with these capabilities does not give it:
/// scheduler and forwarding mode. Thread: any.
[[nodiscard]] std::vector<Unsupported> unsupported_of(const ServicePort& service,
                                                      const Capabilities& can);

}  // namespace sluice::core
