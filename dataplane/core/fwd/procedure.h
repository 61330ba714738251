#pragma once

// The packet procedure of section 8 (P-1..P-10) with the refusals of section 9, as a template over
// what listens to it. decide.cc instantiates it with NoTrace, whose empty members leave no code:
// workers call that one. explain.cc instantiates it with a trace that writes a line for each step.
// So there is one procedure, and what explain prints is what decide does.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "dataplane/core/fwd/decide.h"

namespace sluice::core {

/// One frontend that was looked up.
struct FrontendMatch {
  const ServicePort* service = nullptr;
  Frontend frontend;
  [[nodiscard]] explicit operator bool() const noexcept { return service != nullptr; }
  [[nodiscard]] bool dispatches() const noexcept {
    return service != nullptr && service->dispatches(frontend.kind);
  }
  /// P-6: listed as without endpoints.
  [[nodiscard]] bool refuses() const noexcept {
    return service != nullptr &&
           (service->mode_refuses(frontend.kind) ||
            !(frontend.kind == FrontendKind::kClusterIp ? service->has_internal
                                                        : service->has_external));
  }
};

/// What the procedure asked about masquerading, and what came of it.
enum class MarkCause : std::uint8_t {
  kMasqueradeAll,    ///< P-2, marked: the node masquerades everything to cluster IPs
  kNotPodLocal,      ///< P-2, marked: a detector exists and the source is no pod of it
  kNoDetector,       ///< P-2, not marked: nothing tells pods from others
  kPodLocal,         ///< P-2, not marked
  kExternalTraffic,  ///< P-5, marked: policy Cluster, or the Service asks for fullnat
  kHostLocal,        ///< P-5, marked: a source of this host
  kModeKeepsSource,  ///< P-5, not marked: the Service's mode overrides the rule
  kFullNatMode,      ///< marked: the Service asks for fullnat
};

/// Why a source address is translated or kept (P-9).
enum class SourceCause : std::uint8_t { kModeKeepsSource, kMarked, kHairpin, kKept };

/// Hears the procedure and does nothing. Another trace has the same members.
struct NoTrace {
  void looked_up(const FrontendKey&, const FrontendMatch&) const noexcept {}
  void node_port_address(const IpAddress&, bool) const noexcept {}
  void source_checked(const FrontendMatch&, bool) const noexcept {}
  void considered(const FrontendMatch&) const noexcept {}
  void mark(MarkCause) const noexcept {}
  void chose(const Decision&) const noexcept {}
  void refused(const Decision&) const noexcept {}
  void source(const Endpoint&, SourceCause) const noexcept {}
};

/// One run for one flow. @tparam Trace NoTrace or something with its members.
template <class Trace>
class Procedure {
 public:
  /// Precondition: source and destination are of one family.
  Procedure(const ForwardingTable& table, const Flow& flow, Trace& trace) noexcept
      : table_(table), flow_(flow), node_(table.node().of(flow.tuple.dst.family())), trace_(trace) {
    const FlowTuple& tuple = flow.tuple;
    address_ = find({tuple.dst, tuple.dport, tuple.protocol, false});
    look_at_node_port();
  }

  /// @param exact  what find_frontend() says of the destination. The trace does not hear of it, nor
  ///               of node ports where they do not matter.
  Procedure(const ForwardingTable& table, const Flow& flow, Trace& trace,
            const std::optional<Frontend>& exact) noexcept
      : table_(table), flow_(flow), node_(table.node().of(flow.tuple.dst.family())), trace_(trace) {
    if (exact) {
      address_ = {table.service(exact->slot), *exact};
    }
    if (!address_.dispatches()) {
      look_at_node_port();
    }
  }

  Decision run() noexcept {
    if (source_is_refused()) {
      return refusal(address_, FlowVerdict::kDrop, DecisionReason::kSourceNotAllowed);
    }
    // P-3: exact frontends first; one that is empty lets the packet fall through to the node port.
    for (const FrontendMatch* match : {&address_, &node_port_}) {
      trace_.considered(*match);
      if (match->dispatches()) {
        Decision decision = dispatch(*match);
        if (decision.eligible.empty()) {
          look_at_node_port();
          return no_endpoints();
        }
        return decision;
      }
    }
    return no_endpoints();
  }

 private:
  [[nodiscard]] static bool contains(const std::vector<IpAddress>& sorted,
                                     const IpAddress& address) noexcept {
    return std::binary_search(sorted.begin(), sorted.end(), address);
  }
  [[nodiscard]] static bool contains(const std::vector<Cidr>& cidrs,
                                     const IpAddress& address) noexcept {
    return std::any_of(cidrs.begin(), cidrs.end(),
                       [&](const Cidr& c) { return c.contains(address); });
  }

  [[nodiscard]] FrontendMatch find(const FrontendKey& key) const noexcept {
    FrontendMatch match;
    if (const auto frontend = table_.find_frontend(key)) {
      match = {table_.service(frontend->slot), *frontend};
    }
    trace_.looked_up(key, match);
    return match;
  }

  void look_at_node_port() noexcept {
    if (looked_at_node_port_) {
      return;
    }
    looked_at_node_port_ = true;
    const FlowTuple& tuple = flow_.tuple;
    const bool node_port_address = is_node_port_address();
    trace_.node_port_address(tuple.dst, node_port_address);
    if (node_port_address) {
      node_port_ = find(FrontendKey::of_node_port(tuple.dst.family(), tuple.dport, tuple.protocol));
    }
  }

  // Section 13.
  [[nodiscard]] bool is_node_port_address() const noexcept {
    return contains(node_.node_port_addresses(), flow_.tuple.dst);
  }

  // P-1, F-1..F-7.
  [[nodiscard]] bool source_is_refused() const noexcept {
    const bool filtered = address_ && address_.frontend.kind == FrontendKind::kLoadBalancerVip &&
                          !address_.service->allowed_sources.empty();
    if (!filtered) {
      return false;
    }
    const bool allowed = contains(address_.service->allowed_sources, flow_.tuple.src);
    trace_.source_checked(address_, allowed);
    return !allowed;
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

  void mark(Decision& d, MarkCause cause) const noexcept {
    d.masquerade = true;
    trace_.mark(cause);
  }

  // P-2. A frontend of kind cluster IP is an active cluster IP; others may share the address.
  void mark_cluster_ip_traffic(FrontendKind kind, Decision& d) const noexcept {
    if (kind != FrontendKind::kClusterIp && !contains(node_.active_cluster_ips, flow_.tuple.dst)) {
      return;
    }
    if (table_.node().masquerade_all) {
      mark(d, MarkCause::kMasqueradeAll);
    } else if (!detector_exists()) {
      trace_.mark(MarkCause::kNoDetector);
    } else if (!pod_local()) {
      mark(d, MarkCause::kNotPodLocal);
    } else {
      trace_.mark(MarkCause::kPodLocal);
    }
  }

  [[nodiscard]] Decision dispatch(const FrontendMatch& match) const noexcept {
    const ServicePort& service = *match.service;
    Decision d;
    d.verdict = FlowVerdict::kForward;
    d.frontend = match.frontend.kind;
    d.slot = match.frontend.slot;
    d.service = &service;
    d.affinity_seconds = service.affinity_seconds;
    mark_cluster_ip_traffic(match.frontend.kind, d);
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
      mark_external_traffic(service, d);
    } else if (detector_exists() && pod_local()) {
      choose(d, DecisionReason::kShortCircuitPod);
    } else if (host_local()) {
      choose(d, DecisionReason::kShortCircuitHost);
      mark(d, MarkCause::kHostLocal);
    } else {
      choose(d, DecisionReason::kLocalPolicy);
    }
    if (!d.masquerade && service.mode == ForwardingMode::kFullNat) {
      mark(d, MarkCause::kFullNatMode);
    }
  }

  // A Service that names a mode overrides P-5's mark, but not for host-local sources.
  void mark_external_traffic(const ServicePort& service, Decision& d) const noexcept {
    if (d.masquerade) {
      return;
    }
    if (service.masquerade_external) {
      mark(d, MarkCause::kExternalTraffic);
    } else if (host_local()) {
      mark(d, MarkCause::kHostLocal);
    } else {
      trace_.mark(MarkCause::kModeKeepsSource);
    }
  }

  void choose(Decision& d, DecisionReason reason) const noexcept {
    const bool local = reason == DecisionReason::kLocalPolicy;
    d.reason = reason;
    d.eligible = local ? d.service->local : d.service->cluster;
    d.plan = local ? d.service->local_plan.plan.get() : d.service->cluster_plan.plan.get();
    trace_.chose(d);
  }

  [[nodiscard]] Decision refusal(const FrontendMatch& match, FlowVerdict verdict,
                                 DecisionReason reason) const noexcept {
    Decision d;
    d.verdict = verdict;
    d.reason = reason;
    d.frontend = match.frontend.kind;
    d.slot = match.frontend.slot;
    d.service = match.service;
    trace_.refused(d);
    return d;
  }

  static DecisionReason reason_of_refusal(const FrontendMatch& match) noexcept {
    if (!match.service->has_any) {
      return DecisionReason::kNoEndpoints;
    }
    if (match.service->mode_refuses(match.frontend.kind)) {
      return DecisionReason::kModeRefuses;
    }
    return match.service->crosses_families() ? DecisionReason::kNoEndpoints
                                             : DecisionReason::kNoLocalEndpoints;
  }

  // P-6, section 9. A packet for a local address meets the node-port check first; one that a host
  // process sends meets the check of the addresses first.
  [[nodiscard]] Decision no_endpoints() const noexcept {
    const bool from_host = flow_.ingress.empty();
    const FrontendMatch& first = from_host ? address_ : node_port_;
    const FrontendMatch& second = from_host ? node_port_ : address_;
    for (const FrontendMatch* match : {&first, &second}) {
      if (match->refuses()) {
        const EmptyVerdict verdict = match->service->when_empty(match->frontend.kind);
        return refusal(*match,
                       verdict == EmptyVerdict::kReject ? FlowVerdict::kReject : FlowVerdict::kDrop,
                       reason_of_refusal(*match));
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
    return refusal({}, FlowVerdict::kPass, DecisionReason::kNotAFrontend);
  }

  const ForwardingTable& table_;
  const Flow& flow_;
  const NodePart::PerFamily& node_;
  Trace& trace_;
  FrontendMatch address_;
  FrontendMatch node_port_;
  bool looked_at_node_port_ = false;
};

[[nodiscard]] inline bool keeps_source(ForwardingMode mode) noexcept {
  return mode == ForwardingMode::kDr || mode == ForwardingMode::kIpip;
}

/// P-9 for one endpoint. True: the source is translated.
template <class Trace>
[[nodiscard]] bool translates_source(const Decision& decision, const Flow& flow,
                                     const Endpoint& chosen, Trace& trace) noexcept {
  if (keeps_source(asked_mode(decision))) {
    trace.source(chosen, SourceCause::kModeKeepsSource);
    return false;
  }
  if (decision.masquerade) {
    trace.source(chosen, SourceCause::kMarked);
    return true;
  }
  const bool hairpin = chosen.local && chosen.address == flow.tuple.src;
  trace.source(chosen, hairpin ? SourceCause::kHairpin : SourceCause::kKept);
  return hairpin;
}

}  // namespace sluice::core
