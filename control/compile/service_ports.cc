// Which Services are proxied and what of them counts: rules O-1..O-7, S-1..S-14, M-3 (sections 2,
// 3). S-4 is source_ranges.cc, S-7 health_ports.cc, S-8 affinity.cc.
#include "control/compile/service_ports.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "control/compile/affinity.h"
#include "control/compile/health_ports.h"
#include "control/compile/modes.h"
#include "control/compile/source_ranges.h"

namespace sluice::compile {
namespace {

constexpr const char* kProxyNameLabel = "service.kubernetes.io/service-proxy-name";
constexpr std::size_t kMaxNameLength = 253;  // longest name the Kubernetes API takes

bool blank(const std::string& text) {
  return text.find_first_not_of(" \t\r\n") == std::string::npos;
}

// O-1..O-3.
bool is_proxied(const model::Service& service) {
  return !service.labels.contains(kProxyNameLabel) && !service.cluster_ip.empty() &&
         service.cluster_ip != "None" && service.type != "ExternalName";
}

/// Of lower-case letters, digits and what `more` names, as the Kubernetes API takes names: they are
/// printed into rules, logs and metrics.
bool has_good_characters(std::string_view name, std::string_view more) {
  return std::all_of(name.begin(), name.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           more.find(c) != std::string_view::npos;
  });
}

/// @return whether the Service can be told by its name.
bool check_names(const model::Service& service, Reporter& report) {
  bool good = true;
  for (const auto& [field, text] : {std::pair{"metadata.namespace", &service.name.ns},
                                    std::pair{"metadata.name", &service.name.name}}) {
    if (text->empty()) {
      report.invalid(field, "is empty");
    } else if (text->size() > kMaxNameLength) {
      report.invalid(field, "is longer than 253 characters");
    } else if (!has_good_characters(*text, "-.")) {
      report.invalid(field, "has other characters than a-z, 0-9, '-' and '.'");
    } else {
      continue;
    }
    good = false;
  }
  return good;
}

bool is_one_of(std::string_view value, std::initializer_list<std::string_view> known) {
  return std::find(known.begin(), known.end(), value) != known.end();
}

std::string unknown_word(const std::string& value) { return "'" + value + "' is unknown"; }

void check_words(const model::Service& service, Reporter& report) {
  const auto check = [&](const std::string& value, std::initializer_list<std::string_view> known,
                         const char* field) {
    if (!value.empty() && !is_one_of(value, known)) {
      report.invalid(field, unknown_word(value));
    }
  };
  check(service.type, {"ClusterIP", "NodePort", "LoadBalancer", "ExternalName"}, "spec.type");
  check(service.external_traffic_policy, {"Cluster", "Local"}, "spec.externalTrafficPolicy");
  if (service.internal_traffic_policy) {
    check(*service.internal_traffic_policy, {"Cluster", "Local"}, "spec.internalTrafficPolicy");
  }
  for (std::size_t i = 0; i < service.ip_families.size(); ++i) {
    if (!is_one_of(service.ip_families[i], {"IPv4", "IPv6"})) {
      report.invalid(indexed("spec.ipFamilies", i), unknown_word(service.ip_families[i]));
    }
  }
}

void check_cluster_ips(const model::Service& service, Reporter& report) {
  const auto bad = [](const std::string& text) {
    return !text.empty() && text != "None" && !core::parse_address(text);
  };
  if (bad(service.cluster_ip)) {
    report.invalid("spec.clusterIP", "'" + service.cluster_ip + "' is not an address");
  }
  for (std::size_t i = 0; i < service.cluster_ips.size(); ++i) {
    if (bad(service.cluster_ips[i])) {
      report.invalid(indexed("spec.clusterIPs", i),
                     "'" + service.cluster_ips[i] + "' is not an address");
    }
  }
}

bool has_family(const model::Service& service, core::Family family) {
  if (service.ip_families.empty()) {
    const auto ip = core::parse_address(service.cluster_ip);
    return ip && ip->family() == family;
  }
  const std::string wanted = family == core::Family::kIpv4 ? "IPv4" : "IPv6";
  return std::find(service.ip_families.begin(), service.ip_families.end(), wanted) !=
         service.ip_families.end();
}

/// Why an address leads nowhere; "" when it does not.
std::string fault_of_frontend(const model::Service& service, const std::string& text) {
  const auto ip = core::parse_address(text);
  if (!ip) {
    return "'" + text + "' is not an address: ignored";
  }
  return has_family(service, ip->family())
             ? ""
             : "'" + text + "' is of a family this Service does not have: ignored";
}

void check_frontend_addresses(const model::Service& service, Reporter& report) {
  const auto check = [&](const std::string& text, const char* list, std::size_t i,
                         const char* field) {
    if (const auto fault = fault_of_frontend(service, text); !fault.empty()) {
      report.warning(indexed(list, i, field), fault);
    }
  };
  for (std::size_t i = 0; i < service.external_ips.size(); ++i) {
    if (!blank(service.external_ips[i])) {
      check(service.external_ips[i], "spec.externalIPs", i, "");
    }
  }
  for (std::size_t i = 0; i < service.load_balancer_ingress.size(); ++i) {
    if (!service.load_balancer_ingress[i].ip.empty()) {
      check(service.load_balancer_ingress[i].ip, "status.loadBalancer.ingress", i, ".ip");
    }
  }
}

// S-1.
std::optional<core::IpAddress> cluster_ip_of(const model::Service& service, core::Family family,
                                             Reporter& report) {
  if (service.ip_families.empty()) {
    const auto ip = core::parse_address(service.cluster_ip);
    return ip && ip->family() == family ? ip : std::nullopt;
  }
  const std::string wanted = family == core::Family::kIpv4 ? "IPv4" : "IPv6";
  const auto at = std::find(service.ip_families.begin(), service.ip_families.end(), wanted);
  const auto index = static_cast<std::size_t>(at - service.ip_families.begin());
  if (at == service.ip_families.end() || index >= service.cluster_ips.size()) {
    return std::nullopt;
  }
  const auto ip = core::parse_address(service.cluster_ips[index]);
  if (ip && ip->family() != family) {
    report.invalid(indexed("spec.clusterIPs", index),
                   "'" + service.cluster_ips[index] + "' is not an " + wanted + " address");
    return std::nullopt;
  }
  return ip;
}

void add(std::vector<core::IpAddress>& list, const std::string& text, core::Family family) {
  const auto ip = core::parse_address(text);
  if (ip && ip->family() == family && std::find(list.begin(), list.end(), *ip) == list.end()) {
    list.push_back(*ip);
  }
}

// S-2.
std::vector<core::IpAddress> external_ips_of(const model::Service& service, core::Family family) {
  std::vector<core::IpAddress> out;
  for (const std::string& text : service.external_ips) {
    add(out, text, family);
  }
  return out;
}

// S-3.
std::vector<core::IpAddress> vips_of(const model::Service& service, core::Family family) {
  std::vector<core::IpAddress> out;
  for (const model::LoadBalancerIngress& ingress : service.load_balancer_ingress) {
    if (!ingress.ip.empty() && ingress.ip_mode.value_or("VIP") == "VIP") {
      add(out, ingress.ip, family);
    }
  }
  return out;
}

// S-5.
core::TrafficPolicy external_policy_of(const model::Service& service) {
  const bool cluster_type = service.type.empty() || service.type == "ClusterIP";
  const bool eligible = service.type == "LoadBalancer" || service.type == "NodePort" ||
                        (cluster_type && !service.external_ips.empty());
  return eligible && service.external_traffic_policy == "Local" ? core::TrafficPolicy::kLocal
                                                                : core::TrafficPolicy::kCluster;
}

std::optional<NormalPort> normal_port(const model::ServicePortSpec& spec, std::size_t index,
                                      Reporter& report) {
  const auto protocol = parse_protocol(spec.protocol);
  if (!protocol) {
    report.invalid(indexed("spec.ports", index, ".protocol"),
                   "'" + spec.protocol + "' is not TCP, UDP or SCTP");
  }
  if (!is_port(spec.port)) {
    report.invalid(indexed("spec.ports", index, ".port"),
                   std::to_string(spec.port) + " is not in 1..65535");
  }
  const bool node_port_good = spec.node_port == 0 || is_port(spec.node_port);
  if (!node_port_good) {
    report.invalid(indexed("spec.ports", index, ".nodePort"),
                   std::to_string(spec.node_port) + " is not in 1..65535");
  }
  const bool name_good = has_good_characters(spec.name, "-");
  if (!name_good) {
    report.invalid(indexed("spec.ports", index, ".name"),
                   "has other characters than a-z, 0-9 and '-'");
  }
  if (!protocol || !is_port(spec.port) || !name_good) {
    return std::nullopt;
  }
  return NormalPort{spec.name, *protocol, static_cast<std::uint16_t>(spec.port),
                    node_port_good ? static_cast<std::uint16_t>(spec.node_port) : std::uint16_t{0},
                    index};
}

// S-12, S-13.
std::vector<NormalPort> ports_of(const model::Service& service, Reporter& report) {
  std::vector<NormalPort> out;
  std::set<std::pair<std::string, core::Protocol>> names;
  std::set<std::pair<std::uint16_t, core::Protocol>> numbers;
  for (std::size_t i = 0; i < service.ports.size(); ++i) {
    auto port = normal_port(service.ports[i], i, report);
    if (!port) {
      continue;
    }
    if (!names.insert({port->name, port->protocol}).second) {
      report.invalid(indexed("spec.ports", i, ".name"),
                     "'" + port->name + "' is used by an earlier port of that protocol");
    } else if (!numbers.insert({port->port, port->protocol}).second) {
      report.invalid(indexed("spec.ports", i, ".port"),
                     std::to_string(port->port) + " is used by an earlier port of that protocol");
    } else {
      out.push_back(std::move(*port));
    }
  }
  return out;
}

std::optional<NormalFamily> normal_family(const model::Service& service, core::Family family,
                                          const NodeContext& node, Reporter& report) {
  const auto cluster_ip = cluster_ip_of(service, family, report);
  if (!cluster_ip) {  // O-5
    return std::nullopt;
  }
  NormalFamily out;
  out.family = family;
  out.cluster_ip = *cluster_ip;
  out.external_ips = external_ips_of(service, family);
  out.load_balancer_vips = vips_of(service, family);
  out.allowed_sources =
      allowed_sources(service, family, out.load_balancer_vips, node.node_ip(family));
  out.externally_accessible = !out.external_ips.empty() || !out.load_balancer_vips.empty();
  if (!node.allow_external_ips) {  // S-2: absent, but S-9 looks before the gate
    out.external_ips.clear();
  }
  return out;
}

}  // namespace

std::string printed_name(const model::ObjectName& service, const std::string& port_name) {
  return port_name.empty() ? service.text() : service.text() + ":" + port_name;
}

std::optional<core::Protocol> parse_protocol(std::string_view text) {
  if (text.empty() || text == "TCP") {
    return core::Protocol::kTcp;
  }
  if (text == "UDP") {
    return core::Protocol::kUdp;
  }
  if (text == "SCTP") {
    return core::Protocol::kSctp;
  }
  return std::nullopt;
}

bool is_port(std::int64_t value) {
  return value >= 1 && value <= 65535;
}

NormalService normalise(const model::Service& service, const NodeContext& node, Reporter& report) {
  NormalService out;
  const bool named = check_names(service, report);
  check_words(service, report);
  check_cluster_ips(service, report);
  check_frontend_addresses(service, report);
  check_source_ranges(service, report);
  out.external_policy = external_policy_of(service);
  out.internal_policy = service.internal_traffic_policy == "Local" ? core::TrafficPolicy::kLocal
                                                                   : core::TrafficPolicy::kCluster;
  out.affinity_seconds = affinity_seconds(service, report);
  out.health_check_node_port =
      health_check_node_port(service, out.external_policy == core::TrafficPolicy::kLocal, report);
  out.created = service.creation_unix_seconds.value_or(INT64_MAX);
  auto ports = ports_of(service, report);
  auto extensions = extensions_of(service, node.default_scheduler, report);
  if (extensions && !can_have_mode(service, extensions->mode, report)) {
    extensions.reset();
  }
  if (!is_proxied(service) || !extensions || !named) {
    return out;
  }
  out.extensions = std::move(*extensions);
  out.ports = std::move(ports);
  for (const core::Family family : {core::Family::kIpv4, core::Family::kIpv6}) {
    if (auto normal = normal_family(service, family, node, report)) {
      out.families.push_back(std::move(*normal));
    }
  }
  return out;
}

}  // namespace sluice::compile
