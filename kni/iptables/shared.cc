// The chains that all service ports share.
#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "dataplane/core/fwd/masquerade_ports.h"
#include "kni/iptables/names.h"
#include "kni/iptables/render.h"
#include "kni/iptables/words.h"

namespace sluice::kni::ipt {
namespace {

using core::Family;
using core::FrontendKey;
using core::FrontendKind;
using core::Protocol;
using core::ServiceSlot;

constexpr const char* kToHost = "-m addrtype --dst-type LOCAL ";

class Writer {
 public:
  Writer(const core::ForwardingTable& table, Family family, const RenderOptions& options)
      : table_(table), node_(table.node().of(family)), options_(options) {
    out_.family = family;
    for (const char* chain :
         {kServicesChain, kExternalServicesChain, kForwardChain, kNodePortsChain, kFirewallChain}) {
      out_.filter[chain];
    }
    for (const char* chain : {kServicesChain, kNodePortsChain, kPostroutingChain, kMarkChain}) {
      out_.nat[chain];
    }
  }

  Ruleset render(const std::vector<ServiceSlot>& slots) {
    add_marks();
    add_forward();
    for (const ServiceSlot slot : slots) {
      add_service(slot);
    }
    add_node_port_dispatch();
    return std::move(out_);
  }

 private:
  /// P-9 and Q-1.
  void add_marks() {
    const std::string mark = mark_text(table_.node().mark_bit);
    out_.nat[kMarkChain] = {"-j MARK --or-mark " + mark};
    std::vector<std::string>& rules = out_.nat[kPostroutingChain];
    rules = {"-m mark ! --mark " + mark + "/" + mark + " -j RETURN", "-j MARK --xor-mark " + mark};
    const std::string say = comment("kubernetes service traffic requiring SNAT");
    const std::string random = options_.random_fully ? " --random-fully" : "";
    const auto ports = core::masquerade_ports(table_.node(), out_.family);
    if (!options_.taps.empty() && ports) {
      const std::string range = std::to_string(ports->first) + "-" + std::to_string(ports->last);
      for (const Protocol p : {Protocol::kTcp, Protocol::kUdp, Protocol::kSctp}) {
        rules.push_back(say + protocol_match(p) + "-j MASQUERADE --to-ports " + range + random);
      }
    }
    rules.push_back(say + "-j MASQUERADE" + random);
  }

  void add_forward() {
    const std::string mark = mark_text(table_.node().mark_bit);
    std::vector<std::string>& rules = out_.filter[kForwardChain];
    if (options_.drop_invalid) {
      rules.emplace_back("-m conntrack --ctstate INVALID -j DROP");
    }
    rules.push_back(comment("kubernetes forwarding rules") + "-m mark --mark " + mark + "/" + mark +
                    " -j ACCEPT");
    rules.push_back(comment("kubernetes forwarding conntrack rule") +
                    "-m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT");
    if (has_localhost_node_ports(table_.node(), out_.family, options_)) {
      out_.filter[kSharedFirewallChain].push_back(
          comment(kLoopbackGuard) +
          "-d 127.0.0.0/8 ! -s 127.0.0.0/8 -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT "
          "-j DROP");
    }
  }

  void add_service(ServiceSlot slot) {
    const core::ServicePort& s = *table_.service(slot);
    const std::string name = safe_name(s.name);
    const std::string hash = chain_hash(s.name, s.protocol);
    const auto at = [&](const core::IpAddress& a) {
      return FrontendKey{a, s.port, s.protocol, false};
    };
    if (owns(table_, slot, at(s.cluster_ip), FrontendKind::kClusterIp)) {
      add_cluster_ip(s, name, hash);
    }
    for (const core::IpAddress& a : s.external_ips) {
      if (owns(table_, slot, at(a), FrontendKind::kExternalIp)) {
        add_external(s, name, frontend_match(s.protocol, a, s.port), FrontendKind::kExternalIp,
                     kExternalPrefix + hash);
      }
    }
    for (const core::IpAddress& a : s.load_balancer_vips) {
      if (owns(table_, slot, at(a), FrontendKind::kLoadBalancerVip)) {
        const bool limited = !s.allowed_sources.empty();
        const std::string match = frontend_match(s.protocol, a, s.port);
        add_external(s, name, match, FrontendKind::kLoadBalancerVip,
                     (limited ? kRangesPrefix : kExternalPrefix) + hash);
        if (limited && s.dispatches(FrontendKind::kLoadBalancerVip) && !s.crosses_families()) {
          out_.filter[kFirewallChain].push_back(
              comment(name + " traffic not accepted by " + kRangesPrefix + hash) + match +
              "-j DROP");
        }
      }
    }
    add_node_port(slot, s, name, kExternalPrefix + hash);
    if (s.health_check_node_port != 0 && health_ports_.insert(s.health_check_node_port).second) {
      out_.filter[kNodePortsChain].push_back(
          comment(name + " health check node port") + "-m tcp -p tcp --dport " +
          std::to_string(s.health_check_node_port) + " -j ACCEPT");
    }
  }

  void add_cluster_ip(const core::ServicePort& s, const std::string& name,
                      const std::string& hash) {
    const std::string match = frontend_match(s.protocol, s.cluster_ip, s.port);
    if (s.has_internal && !s.crosses_families()) {
      const bool local = s.internal_policy == core::TrafficPolicy::kLocal;
      out_.nat[kServicesChain].push_back(comment(name + " cluster IP") + match + "-j " +
                                         (local ? kLocalPrefix : kClusterPrefix) + hash);
    } else {
      out_.filter[kServicesChain].push_back(
          refusal(name, match, s.when_empty(FrontendKind::kClusterIp)));
    }
  }

  /// External IPs and VIPs.
  void add_external(const core::ServicePort& s, const std::string& name, const std::string& match,
                    FrontendKind kind, const std::string& chain) {
    if (s.dispatches(kind) && !s.crosses_families()) {
      const bool vip = kind == FrontendKind::kLoadBalancerVip;
      out_.nat[kServicesChain].push_back(
          comment(name + (vip ? " loadbalancer IP" : " external IP")) + match + "-j " + chain);
    }
    add_external_refusal(s, name, match, kind);
  }

  void add_node_port(ServiceSlot slot, const core::ServicePort& s, const std::string& name,
                     const std::string& chain) {
    const FrontendKey key = FrontendKey::of_node_port(s.family, s.node_port, s.protocol);
    if (s.node_port == 0 || !owns(table_, slot, key, FrontendKind::kNodePort)) {
      return;
    }
    const std::string port =
        protocol_match(s.protocol) + "--dport " + std::to_string(s.node_port) + " ";
    if (s.dispatches(FrontendKind::kNodePort) && !s.crosses_families()) {
      out_.nat[kNodePortsChain].push_back(comment(name) + port + "-j " + chain);
    }
    add_external_refusal(s, name, kToHost + port, FrontendKind::kNodePort);
  }

  /// Section 9; NP-8: a node port is refused on any local address.
  void add_external_refusal(const core::ServicePort& s, const std::string& name,
                            const std::string& match, FrontendKind kind) {
    const bool crosses = s.crosses_families();
    if (!s.has_external || crosses || s.mode_refuses(kind)) {
      out_.filter[kExternalServicesChain].push_back(
          refusal(name, match, crosses ? core::EmptyVerdict::kReject : s.when_empty(kind)));
    }
  }

  static std::string refusal(const std::string& name, const std::string& match,
                             core::EmptyVerdict verdict) {
    const bool reject = verdict == core::EmptyVerdict::kReject;
    return comment(name + (reject ? " has no endpoints" : " has no local endpoints")) + match +
           (reject ? "-j REJECT" : "-j DROP");
  }

  /// Section 13. Behind all frontends with an address.
  void add_node_port_dispatch() {
    const std::string say =
        comment("kubernetes service nodeports; NOTE: this must be the last rule in this chain");
    const std::string go = std::string("-j ") + kNodePortsChain;
    std::vector<std::string>& rules = out_.nat[kServicesChain];
    if (!node_.node_ports.match_all) {
      for (const core::IpAddress& a : node_.node_ports.addresses) {
        if (!a.is_loopback() || options_.localhost_node_ports) {
          rules.push_back(say + "-d " + core::to_string(a) + " " + go);
        }
      }
      return;
    }
    const bool v4 = out_.family == Family::kIpv4;
    const bool loopback = v4 && options_.localhost_node_ports;
    rules.push_back(say + kToHost +
                    (loopback ? ""
                     : v4     ? "! -d 127.0.0.0/8 "
                              : "! -d ::1/128 ") +
                    go);
  }

  const core::ForwardingTable& table_;
  const core::NodePart::PerFamily& node_;
  const RenderOptions& options_;
  std::set<std::uint16_t> health_ports_;
  Ruleset out_;
};

}  // namespace

const char* name_of(Table table) noexcept {
  switch (table) {
    case Table::kFilter:
      return "filter";
    case Table::kNat:
      return "nat";
    case Table::kMangle:
      break;
  }
  return "mangle";
}

bool is_large(std::size_t endpoints) noexcept {
  return endpoints > kLargeCluster;
}

std::size_t count_endpoints(const core::ForwardingTable& table, Family family) noexcept {
  std::size_t count = 0;
  for (std::uint32_t i = 0; i < table.slot_limit(); ++i) {
    const core::ServicePort* s = table.service(static_cast<ServiceSlot>(i));
    count += s != nullptr && s->family == family ? s->endpoints.size() : 0;
  }
  return count;
}

std::vector<ServiceSlot> ordered_slots(const core::ForwardingTable& table, Family family) {
  std::vector<ServiceSlot> slots;
  for (std::uint32_t i = 0; i < table.slot_limit(); ++i) {
    const auto slot = static_cast<ServiceSlot>(i);
    const core::ServicePort* s = table.service(slot);
    if (s != nullptr && s->family == family) {
      slots.push_back(slot);
    }
  }
  const auto key = [&](ServiceSlot slot) {
    const core::ServicePort& s = *table.service(slot);
    return std::tuple<const std::string&, core::Protocol, ServiceSlot>(s.name, s.protocol, slot);
  };
  std::sort(slots.begin(), slots.end(),
            [&](ServiceSlot a, ServiceSlot b) { return key(a) < key(b); });
  return slots;
}

Ruleset render_shared(const core::ForwardingTable& table, Family family,
                      const std::vector<ServiceSlot>& slots, const RenderOptions& options) {
  return Writer(table, family, options).render(slots);
}

Ruleset render(const core::ForwardingTable& table, Family family, const RenderOptions& options) {
  const std::vector<ServiceSlot> slots = ordered_slots(table, family);
  Ruleset out = render_shared(table, family, slots, options);
  const bool comments = !is_large(count_endpoints(table, family));
  for (const ServiceSlot slot : slots) {
    out.nat.merge(render_service(table, slot, comments));
  }
  return out;
}

bool has_localhost_node_ports(const core::NodePart& node, Family family,
                              const RenderOptions& options) {
  if (family != Family::kIpv4 || !options.localhost_node_ports) {
    return false;
  }
  const core::NodePortAddresses& ports = node.of(family).node_ports;
  return ports.match_all || std::any_of(ports.addresses.begin(), ports.addresses.end(),
                                        [](const core::IpAddress& a) { return a.is_loopback(); });
}

bool service_chains_differ(const core::NodePart& before, const core::NodePart& after,
                           Family family) {
  return before.mark_bit != after.mark_bit || before.masquerade_all != after.masquerade_all ||
         before.zone != after.zone || before.of(family).detector != after.of(family).detector;
}

}  // namespace sluice::kni::ipt
