#include "dataplane/core/fwd/text.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace sluice::core {
namespace {

std::string join(const std::vector<IpAddress>& list) {
  std::string out;
  for (const IpAddress& a : list) {
    out += (out.empty() ? "" : " ") + to_string(a);
  }
  return out.empty() ? "-" : out;
}

std::string join(const std::vector<Cidr>& list) {
  std::string out;
  for (const Cidr& c : list) {
    out += (out.empty() ? "" : " ") + to_string(c);
  }
  return out.empty() ? "-" : out;
}

std::string join(const ServicePort& block, const std::vector<EndpointIndex>& list) {
  std::string out;
  for (const EndpointIndex i : list) {
    const Endpoint& e = block.endpoint(i);
    out += (out.empty() ? "" : " ") + to_string(e.address, e.port);
  }
  return out.empty() ? "-" : out;
}

std::string detector_text(const LocalDetector& d) {
  switch (d.kind) {
    case LocalDetector::Kind::kNone:
      return "none";
    case LocalDetector::Kind::kCidr:
      return "source in " + to_string(d.cidr);
    case LocalDetector::Kind::kBridge:
      return "bridge " + d.interface;
    case LocalDetector::Kind::kInterfacePrefix:
      return "interface " + d.interface + "*";
  }
  return "?";
}

std::string flags_of(const ServicePort& b) {
  std::string out;
  const std::pair<bool, const char*> flags[] = {
      {b.uses_cluster, "uses-cluster"},
      {b.uses_local, "uses-local"},
      {b.externally_accessible, "external"},
      {b.has_any, "has-any"},
      {b.has_internal, "has-internal"},
      {b.has_external, "has-external"},
      {b.local_is_terminating_fallback, "local-terminating"},
      {b.masquerade_external, "masquerade-external"},
      {b.mode_refuses_addresses, "mode-refuses-addresses"},
      {b.mode_refuses_node_port, "mode-refuses-node-port"}};
  for (const auto& [set, text] : flags) {
    if (set) {
      out += std::string(" ") + text;
    }
  }
  return out;
}

std::string endpoint_text(const Endpoint& e, TextOptions options) {
  std::string out =
      "  endpoint " + to_string(e.address, e.port) + " weight " + std::to_string(e.weight);
  if (options.ids) {
    out += " id " + std::to_string(static_cast<std::uint32_t>(e.id));
  }
  const std::pair<bool, const char*> flags[] = {{e.local, " local"},
                                                {e.ready, " ready"},
                                                {e.serving, " serving"},
                                                {e.terminating, " terminating"}};
  for (const auto& [set, text] : flags) {
    out += set ? text : "";
  }
  return out + "\n";
}

std::string node_text(const NodePart& node) {
  std::string out = "node " + node.node_name + " zone " + (node.zone.empty() ? "-" : node.zone) +
                    " mark " + std::to_string(node.mark_bit) +
                    (node.masquerade_all ? " masquerade-all" : "") + " snat-ports " +
                    std::to_string(node.snat_first_port) + "-" +
                    std::to_string(node.snat_last_port) + "\n";
  for (const Family family : {Family::kIpv4, Family::kIpv6}) {
    const NodePart::PerFamily& f = node.of(family);
    out += family == Family::kIpv4 ? " ipv4\n" : " ipv6\n";
    out += "  node-ip " + (f.node_ip ? to_string(*f.node_ip) : "-") + "\n";
    out += "  detector " + detector_text(f.detector) + "\n";
    out += "  node-ports " +
           (f.node_ports.match_all ? std::string("all") : join(f.node_ports.addresses)) + "\n";
    out += "  local " + join(f.local_addresses) + "\n";
    out += "  cluster-ips " + join(f.active_cluster_ips) + "\n";
    out += "  service-cidrs " + join(f.service_cidrs) + "\n";
    out += "  announced " + join(f.announced) + "\n";
    out += "  snat " + join(f.snat_addresses) + "\n";
    out += f.tunnel_sources ? "  tunnel-sources " + to_string(*f.tunnel_sources) + "\n" : "";
  }
  return out;
}

}  // namespace

std::string safe_name(std::string_view name, std::size_t most) {
  constexpr std::string_view kOther = "-._/:";
  std::string out(name.substr(0, most));
  for (char& c : out) {
    const bool good = std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                      kOther.find(c) != std::string_view::npos;
    c = good ? c : '_';
  }
  return out;
}

std::string_view name_of(TrafficPolicy policy) noexcept {
  return policy == TrafficPolicy::kCluster ? "Cluster" : "Local";
}

std::string_view name_of(SchedulerKind kind) noexcept {
  constexpr std::string_view kNames[] = {"random", "rr", "wrr", "lc",  "wlc", "lblc",
                                         "lblcr",  "sh", "dh",  "sed", "nq",  "mh",   "wrandom"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::vector<std::string_view> flag_names(SchedulerKind kind, std::uint8_t flags) {
  std::vector<std::string_view> names;
  for (const SchedulerFlag& flag : kSchedulerFlags) {
    if (flag.scheduler == kind && (flags & flag.bit) != 0) {
      names.push_back(flag.name);
    }
  }
  return names;
}

std::string scheduler_text(const ServicePort& block) {
  std::string flags;
  for (const std::string_view name : flag_names(block.scheduler, block.scheduler_flags)) {
    flags += (flags.empty() ? "" : ",") + std::string(name);
  }
  return std::string(name_of(block.scheduler)) + (flags.empty() ? "" : "(" + flags + ")");
}

std::optional<SchedulerKind> scheduler_by_name(std::string_view name) noexcept {
  const auto at = std::find_if(kAllSchedulers.begin(), kAllSchedulers.end(),
                               [&](SchedulerKind kind) { return name_of(kind) == name; });
  return at == kAllSchedulers.end() ? std::nullopt : std::optional(*at);
}

std::string scheduler_names() {
  std::string out;
  for (const SchedulerKind kind : kAllSchedulers) {
    out += (out.empty() ? "" : ", ") + std::string(name_of(kind));
  }
  return out;
}

std::string_view name_of(ForwardingMode mode) noexcept {
  constexpr std::string_view kNames[] = {"by-rule", "nat", "fullnat", "dr", "ipip"};
  return kNames[static_cast<std::size_t>(mode)];
}

std::string_view name_of(FrontendKind kind) noexcept {
  constexpr std::string_view kNames[] = {"cluster-ip", "external-ip", "load-balancer-vip",
                                         "node-port"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view name_of(EmptyVerdict verdict) noexcept {
  return verdict == EmptyVerdict::kReject ? "reject" : "drop";
}

std::string to_text(const ServicePort& b, TextOptions options) {
  std::string out = "service " + b.name + " " + std::string(protocol_name(b.protocol)) +
                    (b.family == Family::kIpv4 ? " ipv4" : " ipv6") + " port " +
                    std::to_string(b.port) + " node-port " + std::to_string(b.node_port) +
                    " health-port " + std::to_string(b.health_check_node_port) + "\n";
  out += "  cluster-ip " + to_string(b.cluster_ip) + "\n";
  out += "  external-ips " + join(b.external_ips) + "\n";
  out += "  vips " + join(b.load_balancer_vips) + "\n";
  out += "  allowed " + join(b.allowed_sources) + "\n";
  out += "  policy internal " + std::string(name_of(b.internal_policy)) + " external " +
         std::string(name_of(b.external_policy)) + " when-empty " +
         std::string(name_of(b.internal_when_empty)) + " " +
         std::string(name_of(b.external_when_empty)) + " affinity " +
         std::to_string(b.affinity_seconds) + "\n";
  out += "  scheduler " + scheduler_text(b) + " maglev " + std::to_string(b.maglev_size) +
         " mode " + std::string(name_of(b.mode)) + " created " + std::to_string(b.created_unix_seconds) + "\n";
  out += "  flags" + flags_of(b) + "\n";
  for (const Endpoint& e : b.endpoints) {
    out += endpoint_text(e, options);
  }
  out += "  cluster " + join(b, b.cluster) + "\n";
  out += "  local " + join(b, b.local) + "\n";
  out += "  all-reachable " + join(b, b.all_reachable) + "\n";
  return out;
}

std::string to_text(const ForwardingTable& table, TextOptions options) {
  std::string out;
  if (options.ids) {
    out += "generation " + std::to_string(table.generation()) + " epoch " +
           std::to_string(table.epoch()) + "\n";
  }
  out += node_text(table.node());
  std::map<std::tuple<std::string, Protocol, Family>, std::uint32_t> sorted;
  for (std::uint32_t i = 0; i < table.slot_limit(); ++i) {
    if (const ServicePort* b = table.service(static_cast<ServiceSlot>(i)); b != nullptr) {
      sorted[{b->name, b->protocol, b->family}] = i;
    }
  }
  for (const auto& [key, slot] : sorted) {
    out += options.ids ? "slot " + std::to_string(slot) + " " : "";
    out += to_text(*table.service(static_cast<ServiceSlot>(slot)), options);
  }
  std::map<FrontendKey, Frontend> frontends;
  table.for_each_frontend([&](const FrontendKey& k, const Frontend& f) { frontends[k] = f; });
  for (const auto& [key, frontend] : frontends) {
    out += "frontend " +
           (key.node_port ? (key.address.is_v4() ? "ipv4" : "ipv6") + std::string(" node-port ") +
                                std::to_string(key.port)
                          : to_string(key.address, key.port)) +
           " " + std::string(protocol_name(key.protocol)) + " " +
           std::string(name_of(frontend.kind)) + " -> " + table.service(frontend.slot)->name + "\n";
  }
  return out;
}

}  // namespace sluice::core
