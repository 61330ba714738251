#pragma once

#include <cstdint>
#include <string>

#include "control/http/health_tracker.h"
#include "control/http/http_server.h"

namespace sluice::http {

// Answers of section 14 as pure functions.

/// H-11, H-12.
[[nodiscard]] Response healthz_page(const HealthStatus& status);
/// H-10, H-12.
[[nodiscard]] Response livez_page(const HealthStatus& status);
/// H-3..H-5.
[[nodiscard]] Response service_page(const model::ObjectName& service, std::uint32_t local_endpoints,
                                    bool proxy_healthy);
[[nodiscard]] Response not_found_page();

/// A text as JSON has it.
[[nodiscard]] std::string quoted(const std::string& text);

}  // namespace sluice::http
