#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "control/compile/compiler.h"
#include "dataplane/core/fwd/decide.h"

namespace sluice::test {

inline core::IpAddress ip(std::string_view text) {
  return core::parse_address(text).value_or(core::IpAddress{});
}
inline core::Cidr cidr(std::string_view text) {
  return core::parse_cidr(text).value_or(core::Cidr{});
}

/// A ClusterIP Service shop/NAME with one unnamed TCP port 80.
inline model::Service service(const std::string& name, const std::string& cluster_ip) {
  model::Service s;
  s.name = {"shop", name};
  s.cluster_ip = cluster_ip;
  s.cluster_ips = {cluster_ip};
  s.ports.push_back({"", "TCP", 80, 0, "", ""});
  return s;
}

/// A slice of shop/OWNER; the unnamed TCP port is 8080.
inline model::EndpointSlice slice(const std::string& owner,
                                  const std::vector<std::string>& addresses,
                                  const std::string& suffix = "a") {
  model::EndpointSlice s;
  s.name = {"shop", owner + "-" + suffix};
  s.labels["kubernetes.io/service-name"] = owner;
  s.address_type = !addresses.empty() && !ip(addresses.front()).is_v4() ? "IPv6" : "IPv4";
  s.ports.push_back({"", "TCP", 8080});
  for (const std::string& a : addresses) {
    model::SliceEndpoint e;
    e.addresses = {a};
    e.node_name = "heron";
    s.endpoints.push_back(std::move(e));
  }
  return s;
}

/// A node "kestrel" (192.0.2.11, pods 10.42.0.0/16, services 10.43.0.0/16) and its cluster.
class SmallCluster {
 public:
  SmallCluster() {
    config.node_name = "kestrel";
    config.node_addresses = {ip("192.0.2.11"), ip("2001:db8::11")};
    config.cluster_cidrs = {cidr("10.42.0.0/16"), cidr("fd42::/16")};
    host.addresses = {{ip("192.0.2.11"), "eth0"}, {ip("2001:db8::11"), "eth0"}};
    state.service_cidrs["kubernetes"] = {"kubernetes", {"10.43.0.0/16", "fd43::/112"}};
  }

  void put(const model::Service& s) { state.services.insert_or_assign(s.name, s); }
  void put(const model::EndpointSlice& s) { state.slices.insert_or_assign(s.name, s); }

  /// Compiles from scratch; the result is kept in `compiled`.
  const compile::Compiled& compile() {
    compile::IdRegistry ids(limits);
    auto result = compile::compile_full(state, config, host, compile::Profile::kNftables, ids);
    error = result ? "" : result.error().message;
    compiled = result ? *result : compile::Compiled{};
    return compiled;
  }

  /// Block by printed name; nullptr: none.
  [[nodiscard]] const core::ServicePort* block(std::string_view name,
                                               core::Protocol protocol = core::Protocol::kTcp,
                                               core::Family family = core::Family::kIpv4) const {
    for (std::uint32_t i = 0; compiled.table && i < compiled.table->slot_limit(); ++i) {
      const auto* b = compiled.table->service(static_cast<core::ServiceSlot>(i));
      if (b != nullptr && b->name == name && b->protocol == protocol && b->family == family) {
        return b;
      }
    }
    return nullptr;
  }

  [[nodiscard]] core::Decision decide(std::string_view from, std::string_view to,
                                      std::uint16_t port,
                                      core::Protocol protocol = core::Protocol::kTcp,
                                      std::string_view ingress = "eth0") const {
    return core::decide(*compiled.table, {{ip(from), ip(to), 40000, port, protocol}, ingress});
  }

  /// Lines about an object, as "field: reason".
  [[nodiscard]] std::vector<std::string> lines(std::string_view object) const {
    std::vector<std::string> out;
    for (const auto& l : compiled.report.lines) {
      if (l.object == object) {
        out.push_back(l.field + ": " + l.reason);
      }
    }
    return out;
  }

  model::ClusterState state;
  compile::NodeConfig config;
  compile::HostState host;
  compile::IdRegistry::Limits limits;
  compile::Compiled compiled;
  std::string error;
};

/// "10.0.0.1:80" of each index, in order.
inline std::vector<std::string> names(const core::ServicePort& block,
                                      std::span<const core::EndpointIndex> list) {
  std::vector<std::string> out;
  for (const core::EndpointIndex i : list) {
    out.push_back(core::to_string(block.endpoint(i).address, block.endpoint(i).port));
  }
  return out;
}
inline std::vector<std::string> eligible(const core::Decision& d) {
  return d.service == nullptr ? std::vector<std::string>{} : names(*d.service, d.eligible);
}

}  // namespace sluice::test
