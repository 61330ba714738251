// The packet procedure of section 8 (P-1..P-10) with the refusals of section 9, for the first
// packet of a flow. Nothing here allocates or throws: workers call it on a miss.
#include "dataplane/core/fwd/decide.h"

#include <algorithm>

namespace sluice::core {
namespace {

bool contains(const std::vector<IpAddress>& sorted, const IpAddress& address) noexcept {
  return std::binary_search(sorted.begin(), sorted.end(), address);
}

bool contains(const std::vector<Cidr>& cidrs, const IpAddress& address) noexcept {
  return std::any_of(cidrs.begin(), cidrs.end(),
                     [&](const Cidr& c) { return c.contains(address); });
}

/// One frontend that was looked up.
struct Match {
  const ServicePort* service = nullptr;
  Frontend frontend;
  [[nodiscard]] explicit operator bool() const noexcept { return service != nullptr; }
  [[nodiscard]] bool dispatches() const noexcept {
    return service != nullptr && service->dispatches(frontend.kind);
  }
  /// P-6: listed as without endpoints.
  [[nodiscard]] bool refuses() const noexcept {
    return service != nullptr &&
           !(frontend.kind == FrontendKind::kClusterIp ? service->has_internal
                                                       : service->has_external);
  }
};

class Procedure {
 public:
  Procedure(const ForwardingTable& table, const Flow& flow) noexcept
      : table_(table),
        flow_(flow),
        node_(table.node().of(flow.tuple.dst.family())),
        address_(find({flow.tuple.dst, flow.tuple.dport, flow.tuple.protocol, false})) {
    if (is_node_port_address()) {
      node_port_ = find(FrontendKey::of_node_port(flow.tuple.dst.family(), flow.tuple.dport,
                                                  flow.tuple.protocol));
    }
  }

  Decision run() noexcept {
    if (source_is_refused()) {
      return refusal(address_, FlowVerdict::kDrop, DecisionReason::kSourceNotAllowed);
    }
    // P-3: exact frontends first; one that is empty lets the packet fall through to the node port.
    for (const Match* match : {&address_, &node_port_}) {
      if (match->dispatches()) {
        Decision decision = dispatch(*match);
        return decision.eligible.empty() ? no_endpoints() : decision;
      }
    }
    return no_endpoints();
  }

 private:
  [[nodiscard]] Match find(const FrontendKey& key) const noexcept {
    const auto frontend = table_.find_frontend(key);
    if (!frontend) {
      return {};
    }
    return {table_.service(frontend->slot), *frontend};
  }

  // Section 13.
  [[nodiscard]] bool is_node_port_address() const noexcept {
    const IpAddress& dst = flow_.tuple.dst;
    return node_.node_ports.match_all ? contains(node_.local_addresses, dst)
                                      : contains(node_.node_ports.addresses, dst);
  }

  // P-1, F-1..F-7.
  [[nodiscard]] bool source_is_refused() const noexcept {
    return address_ && address_.frontend.kind == FrontendKind::kLoadBalancerVip &&
           !address_.service->allowed_sources.empty() &&
           !contains(address_.service->allowed_sources, flow_.tuple.src);
  }

  [[nodiscard]] bool detector_exists() const noexcept {
    return node_.detector.kind != LocalDetector::Kind::kNone;
  }

  // M-7 (a), Q-5, Q-6.
  [[nodiscard]] bool pod_local() const noexcept {
    switch (node_.detector.kind) {
      case LocalDetector::Kind::kNone:
        return false;
      case LocalDetector::Kind::kCidr:
        return node_.detector.cidr.contains(flow_.tuple.src);
      case LocalDetector::Kind::kBridge:
        return flow_.ingress == node_.detector.interface;
      case LocalDetector::Kind::kInterfacePrefix:
        return !flow_.ingress.empty() && flow_.ingress.starts_with(node_.detector.interface);
    }
    return false;
  }

  // M-7 (b).
  [[nodiscard]] bool host_local() const noexcept {
    return flow_.tuple.src.is_loopback() || contains(node_.local_addresses, flow_.tuple.src);
  }

  // P-2. A frontend of kind cluster IP is an active cluster IP; others may share the address.
  [[nodiscard]] bool marked_as_cluster_ip(FrontendKind kind) const noexcept {
    if (kind != FrontendKind::kClusterIp && !contains(node_.active_cluster_ips, flow_.tuple.dst)) {
      return false;
    }
    return table_.node().masquerade_all || (detector_exists() && !pod_local());
  }

  [[nodiscard]] Decision dispatch(const Match& match) const noexcept {
    const ServicePort& service = *match.service;
    Decision d;
    d.verdict = FlowVerdict::kForward;
    d.frontend = match.frontend.kind;
    d.slot = match.frontend.slot;
    d.service = &service;
    d.affinity_seconds = service.affinity_seconds;
    d.masquerade = marked_as_cluster_ip(match.frontend.kind);
    if (match.frontend.kind == FrontendKind::kClusterIp) {
      choose(d, service.internal_policy == TrafficPolicy::kLocal ? DecisionReason::kLocalPolicy
                                                                 : DecisionReason::kClusterPolicy);
    } else {
      dispatch_external(service, d);
    }
    return d;
  }

  // P-5.
  void dispatch_external(const ServicePort& service, Decision& d) const noexcept {
    if (service.external_policy == TrafficPolicy::kCluster) {
      choose(d, DecisionReason::kClusterPolicy);
      // A Service that names a mode overrides P-5's mark, but not for host-local sources.
      d.masquerade = d.masquerade || service.masquerade_external || host_local();
    } else if (detector_exists() && pod_local()) {
      choose(d, DecisionReason::kShortCircuitPod);
    } else if (host_local()) {
      choose(d, DecisionReason::kShortCircuitHost);
      d.masquerade = true;
    } else {
      choose(d, DecisionReason::kLocalPolicy);
    }
    d.masquerade = d.masquerade || service.mode == ForwardingMode::kFullNat;
  }

  static void choose(Decision& d, DecisionReason reason) noexcept {
    const bool local = reason == DecisionReason::kLocalPolicy;
    d.reason = reason;
    d.eligible = local ? d.service->local : d.service->cluster;
    d.maglev = local ? d.service->maglev_local : d.service->maglev_cluster;
  }

  [[nodiscard]] static Decision refusal(const Match& match, FlowVerdict verdict,
                                        DecisionReason reason) noexcept {
    Decision d;
    d.verdict = verdict;
    d.reason = reason;
    d.frontend = match.frontend.kind;
    d.slot = match.frontend.slot;
    d.service = match.service;
    return d;
  }

  // P-6, section 9. A packet for a local address meets the node-port check first; one that a host
  // process sends meets the check of the addresses first.
  [[nodiscard]] Decision no_endpoints() const noexcept {
    const bool from_host = flow_.ingress.empty();
    const Match& first = from_host ? address_ : node_port_;
    const Match& second = from_host ? node_port_ : address_;
    for (const Match* match : {&first, &second}) {
      if (match->refuses()) {
        const EmptyVerdict verdict = match->frontend.kind == FrontendKind::kClusterIp
                                         ? match->service->internal_when_empty
                                         : match->service->external_when_empty;
        return refusal(*match,
                       verdict == EmptyVerdict::kReject ? FlowVerdict::kReject : FlowVerdict::kDrop,
                       match->service->has_any ? DecisionReason::kNoLocalEndpoints
                                               : DecisionReason::kNoEndpoints);
      }
    }
    return stray();
  }

  // P-7, P-8.
  [[nodiscard]] Decision stray() const noexcept {
    const IpAddress& dst = flow_.tuple.dst;
    const bool delivered_locally = !flow_.ingress.empty() && contains(node_.local_addresses, dst);
    if (!delivered_locally) {
      if (contains(node_.active_cluster_ips, dst)) {
        return refusal({}, FlowVerdict::kReject, DecisionReason::kStrayClusterIp);
      }
      if (contains(node_.service_cidrs, dst)) {
        return refusal({}, FlowVerdict::kDrop, DecisionReason::kStrayServiceCidr);
      }
    }
    return {};
  }

  const ForwardingTable& table_;
  const Flow& flow_;
  const NodePart::PerFamily& node_;
  Match address_;
  Match node_port_;
};

bool keeps_source(ForwardingMode mode) noexcept {
  return mode == ForwardingMode::kDr || mode == ForwardingMode::kIpip;
}

}  // namespace

Decision decide(const ForwardingTable& table, const Flow& flow) noexcept {
  if (flow.tuple.src.family() != flow.tuple.dst.family()) {
    return {};
  }
  return Procedure(table, flow).run();
}

bool source_is_translated(const Decision& decision, const Flow& flow,
                          const Endpoint& chosen) noexcept {
  if (decision.service != nullptr && decision.frontend != FrontendKind::kClusterIp &&
      keeps_source(decision.service->mode)) {
    return false;
  }
  return decision.masquerade || (chosen.local && chosen.address == flow.tuple.src);
}

ForwardingMode effective_mode(const Decision& decision, const Flow& flow,
                              const Endpoint& chosen) noexcept {
  const bool external = decision.frontend != FrontendKind::kClusterIp;
  if (external && decision.service != nullptr && keeps_source(decision.service->mode)) {
    return decision.service->mode;
  }
  return source_is_translated(decision, flow, chosen) ? ForwardingMode::kFullNat
                                                      : ForwardingMode::kNat;
}

}  // namespace sluice::core
