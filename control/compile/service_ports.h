#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/compile/annotations.h"
#include "control/compile/node_context.h"

namespace sluice::compile {

/// One port of a Service, checked.
struct NormalPort {
  std::string name;
  core::Protocol protocol = core::Protocol::kTcp;
  std::uint16_t port = 0;
  std::uint16_t node_port = 0;  ///< 0: none
  std::size_t index = 0;        ///< in spec.ports
};

/// Frontend addresses of one family.
struct NormalFamily {
  core::Family family = core::Family::kIpv4;
  core::IpAddress cluster_ip;
  std::vector<core::IpAddress> external_ips;
  std::vector<core::IpAddress> load_balancer_vips;
  std::vector<core::Cidr> allowed_sources;
  bool externally_accessible = false;  ///< S-9 by its addresses; a node port comes on top
};

/// A Service after section 3. No families or no ports: it yields nothing.
struct NormalService {
  std::vector<NormalPort> ports;
  std::vector<NormalFamily> families;
  core::TrafficPolicy internal_policy = core::TrafficPolicy::kCluster;
  core::TrafficPolicy external_policy = core::TrafficPolicy::kCluster;
  std::uint32_t affinity_seconds = 0;
  std::uint16_t health_check_node_port = 0;
  std::int64_t created = INT64_MAX;
  Extensions extensions;
};

/// Sections 2 and 3. Bad parts are left out and reported.
[[nodiscard]] NormalService normalise(const model::Service& service, const NodeContext& node,
                                      Reporter& report);

/// "ns/name" or "ns/name:port" (M-3).
[[nodiscard]] std::string printed_name(const model::ObjectName& service,
                                       const std::string& port_name);

/// "TCP", "UDP", "SCTP"; "" is TCP (S-14).
[[nodiscard]] std::optional<core::Protocol> parse_protocol(std::string_view text);
/// 1..65535
[[nodiscard]] bool is_port(std::int64_t value);

}  // namespace sluice::compile
