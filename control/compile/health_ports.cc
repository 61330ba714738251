// Health-check node ports, data part: rules S-7, H-1, H-2 (sections 3 and 14.1).
#include "control/compile/health_ports.h"

#include <set>

#include "control/compile/service_ports.h"

namespace sluice::compile {

std::uint32_t count_local_endpoints(const MergedPorts& ports) {
  std::set<core::IpAddress> seen;
  for (const auto& [key, endpoints] : ports) {
    for (const MergedEndpoint& e : endpoints) {
      if (e.local && e.conditions.ready) {
        seen.insert(e.address);
      }
    }
  }
  return static_cast<std::uint32_t>(seen.size());
}

std::uint16_t health_check_node_port(const model::Service& service, bool local, Reporter& report) {
  if (service.type != "LoadBalancer" || !local) {
    return 0;
  }
  if (service.health_check_node_port == 0) {
    report.warning("spec.healthCheckNodePort",
                   "is 0 although externalTrafficPolicy is Local: no health-check port (S-7)");
    return 0;
  }
  if (!is_port(service.health_check_node_port)) {
    report.invalid("spec.healthCheckNodePort",
                   std::to_string(service.health_check_node_port) + " is not in 0..65535");
    return 0;
  }
  return static_cast<std::uint16_t>(service.health_check_node_port);
}

}  // namespace sluice::compile
