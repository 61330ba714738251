// The traced instantiation of the packet procedure: a line for each step. No rule is applied here.
#include "dataplane/core/fwd/explain.h"

#include <string_view>
#include <utility>

#include "dataplane/core/fwd/procedure.h"
#include "dataplane/core/fwd/text.h"

namespace sluice::core {
namespace {

std::string_view frontend_text(FrontendKind kind) {
  constexpr std::string_view kNames[] = {"cluster IP", "external IP", "load-balancer VIP",
                                         "node port"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string detector_text(const LocalDetector& detector) {
  switch (detector.kind) {
    case LocalDetector::Kind::kNone:
      return "no detector";
    case LocalDetector::Kind::kCidr:
      return "the pods' range " + to_string(detector.cidr);
    case LocalDetector::Kind::kBridge:
      return "bridge " + detector.interface;
    case LocalDetector::Kind::kInterfacePrefix:
      return "interfaces " + detector.interface + "*";
  }
  return "?";
}

std::string join(const std::vector<Cidr>& list) {
  std::string out;
  for (const Cidr& c : list) {
    out += (out.empty() ? "" : ", ") + to_string(c);
  }
  return out;
}

/// Writes a step for what the procedure says. Members as NoTrace.
class StepTrace {
 public:
  StepTrace(const ForwardingTable& table, const Flow& flow, std::vector<Step>& steps)
      : node_(table.node().of(flow.tuple.dst.family())), flow_(flow), steps_(steps) {}

  StepTrace(const ForwardingTable& table, const Flow& flow, const Decision& decision,
            std::vector<Step>& steps)
      : StepTrace(table, flow, steps) {
    marked_ = decision.masquerade;
    mode_ = asked_mode(decision);
  }

  void looked_up(const FrontendKey& key, const FrontendMatch& match) {
    if (!match) {
      add("P-3", to_string(key) + " is no frontend");
      return;
    }
    std::string text = to_string(key) + " is ";
    text += key.node_port ? "of " + match.service->name
                          : "a " + std::string(frontend_text(match.frontend.kind)) + " of " +
                                match.service->name;
    add("P-3", std::move(text));
  }

  void node_port_address(const IpAddress& address, bool is_one) {
    if (is_one) {
      add(node_.node_ports.match_all ? "NP-5" : "NP-1",
          to_string(address) + " is a node-port address of this node");
    }
  }

  void source_checked(const FrontendMatch& match, bool allowed) {
    add("P-1", "source " + source() + " is " + (allowed ? "" : "not ") +
                   "in the source ranges of " + match.service->name + " (" +
                   join(match.service->allowed_sources) + ")");
  }

  void considered(const FrontendMatch& match) {
    if (!match) {
      return;
    }
    const bool internal = match.frontend.kind == FrontendKind::kClusterIp;
    const char* rule = internal ? "P-4" : "P-5";
    const ServicePort& service = *match.service;
    const TrafficPolicy policy = internal ? service.internal_policy : service.external_policy;
    const std::string name = internal ? "internalTrafficPolicy " : "externalTrafficPolicy ";
    add(internal ? "S-6" : "S-5", name + std::string(name_of(policy)));
    if (!match.dispatches()) {
      add(rule, std::string(frontend_text(match.frontend.kind)) + " of " + service.name +
                    " has nothing to send to" + (service.has_any ? " on this node" : ""));
    }
  }

  void mark(MarkCause cause) {
    switch (cause) {
      case MarkCause::kMasqueradeAll:
        return add("P-2", "masquerade: the node masquerades all traffic to cluster IPs");
      case MarkCause::kNotPodLocal:
        return add("P-2",
                   "masquerade: " + source() + " is not of " + detector_text(node_.detector));
      case MarkCause::kNoDetector:
        return add("P-2", "no masquerade: no detector of local pods for this family (Q-5)");
      case MarkCause::kPodLocal:
        return add("P-2", "no masquerade: " + source() + " is of " + detector_text(node_.detector));
      case MarkCause::kExternalTraffic:
        return add("P-5", "masquerade: external traffic with policy Cluster");
      case MarkCause::kHostLocal:
        return add("P-5", "masquerade: source " + source() + " is an address of this node");
      case MarkCause::kModeKeepsSource:
        return add("P-5",
                   "no masquerade: the Service's forwarding mode overrides the one of "
                   "external traffic with policy Cluster");
      case MarkCause::kFullNatMode:
        return add("P-5", "masquerade: the Service asks for mode fullnat");
    }
  }

  void chose(const Decision& d) {
    const char* rule = d.frontend == FrontendKind::kClusterIp ? "P-4" : "P-5";
    const std::string count =
        std::to_string(d.eligible.size()) + (d.eligible.size() == 1 ? " endpoint" : " endpoints");
    std::string text;
    switch (d.reason) {
      case DecisionReason::kLocalPolicy:
        text = "policy Local: from the list of this node's endpoints, " + count;
        break;
      case DecisionReason::kShortCircuitPod:
        text = "policy Local, but " + source() + " is of " + detector_text(node_.detector) +
               ": from the list of the whole cluster, " + count;
        break;
      case DecisionReason::kShortCircuitHost:
        text = "policy Local, but " + source() +
               " is an address of this node: from the list of the whole cluster, " + count;
        break;
      default:
        text = "policy Cluster: from the list of the whole cluster, " + count;
    }
    add(rule, text + (d.eligible.empty() ? ", so it goes on at P-6" : ""));
  }

  void refused(const Decision& d) {
    const std::string what = d.verdict == FlowVerdict::kReject ? "reject" : "drop";
    const std::string name =
        d.service == nullptr ? ""
                             : std::string(frontend_text(d.frontend)) + " of " + d.service->name;
    switch (d.reason) {
      case DecisionReason::kSourceNotAllowed:
        return add("F-3", "drop: the source is not allowed");
      case DecisionReason::kNoLocalEndpoints:
        return add("P-6", what + ": " + name + " has endpoints, but none on this node");
      case DecisionReason::kNoEndpoints:
        return add("P-6", what + ": " + name + " has no endpoint anywhere");
      case DecisionReason::kModeRefuses:
        return add("mode", what + ": " + name + " cannot be served by mode " +
                               std::string(name_of(d.service->mode)) +
                               ", which maps no port: its endpoints have another");
      case DecisionReason::kStrayClusterIp:
        return add("P-7", "reject: a cluster IP in use, but no such port");
      case DecisionReason::kStrayServiceCidr:
        return add("P-7", "drop: inside a ServiceCIDR, but no Service has this address");
      default:
        return add("P-8", "pass: nothing here is for this flow");
    }
  }

  void source(const Endpoint& chosen, SourceCause cause) {
    switch (cause) {
      case SourceCause::kModeKeepsSource:
        return add("P-9", "the source is kept: mode " + std::string(name_of(mode_)) +
                              " never translates it" +
                              (marked_ ? ", which overrides the masquerade above"
                               : chosen.local && chosen.address == flow_.tuple.src
                                   ? ", which overrides that of a hairpin"
                                   : ""));
      case SourceCause::kMarked:
        return add("P-9", "the source is translated: marked above");
      case SourceCause::kHairpin:
        return add("P-9", core::to_string(chosen.address, chosen.port) +
                              " is the source itself (hairpin): the source is translated");
      case SourceCause::kKept:
        return add("P-9", "the source is kept: not marked, no hairpin");
    }
  }

 private:
  [[nodiscard]] std::string source() const { return core::to_string(flow_.tuple.src); }
  void add(const char* rule, std::string text) { steps_.push_back({rule, std::move(text)}); }

  const NodePart::PerFamily& node_;
  const Flow& flow_;
  std::vector<Step>& steps_;
  bool marked_ = false;  ///< by the decision whose source is asked about
  ForwardingMode mode_ = ForwardingMode::kByRule;
};

}  // namespace

std::string to_string(const FrontendKey& key) {
  return (key.node_port ? "node port " + std::to_string(key.port)
                        : to_string(key.address, key.port)) +
         "/" + std::string(protocol_name(key.protocol));
}

Decision explain(const ForwardingTable& table, const Flow& flow, std::vector<Step>& steps) {
  if (flow.tuple.src.family() != flow.tuple.dst.family()) {
    steps.push_back({"P-8", "pass: source and destination are of different families"});
    return {};
  }
  StepTrace trace(table, flow, steps);
  return Procedure<StepTrace>(table, flow, trace).run();
}

bool explain_source(const ForwardingTable& table, const Decision& decision, const Flow& flow,
                    const Endpoint& chosen, std::vector<Step>& steps) {
  StepTrace trace(table, flow, decision, steps);
  return translates_source(decision, flow, chosen, trace);
}

}  // namespace sluice::core
