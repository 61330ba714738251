// Explain: runs the rules of one Service again with a trace. No rule is applied here, only words
// are put to what the rules report.
#include "control/compile/explain.h"

#include <algorithm>
#include <utility>

#include "control/compile/node_context.h"
#include "control/compile/service_blocks.h"
#include "dataplane/core/fwd/text.h"
#include "dataplane/core/sched/pick.h"

namespace sluice::compile {
namespace {

std::string join(const std::vector<std::string>& list) {
  std::string out;
  for (const std::string& item : list) {
    out += (out.empty() ? "" : ", ") + item;
  }
  return out.empty() ? "nothing" : out;
}

/// Name of the object and of the port out of "ns/name:port" (M-3).
ServicePortKey key_of(const core::ServicePort& block) {
  const std::string& text = block.name;
  const auto slash = text.find('/');
  const auto colon = text.find(':');
  ServicePortKey key;
  key.protocol = block.protocol;
  key.family = block.family;
  if (slash != std::string::npos) {
    key.service = {text.substr(0, slash), text.substr(slash + 1, colon - slash - 1)};
  }
  key.port_name = colon == std::string::npos ? "" : text.substr(colon + 1);
  return key;
}

/// Sorted by name, as the map of one namespace is.
std::vector<const model::EndpointSlice*> slices_of(const model::ClusterState& state,
                                                   const model::ObjectName& service) {
  std::vector<const model::EndpointSlice*> slices;
  for (auto at = state.slices.lower_bound({service.ns, ""});
       at != state.slices.end() && at->first.ns == service.ns; ++at) {
    if (model::owner_of(at->second) == service) {
      slices.push_back(&at->second);
    }
  }
  return slices;
}

/// The same endpoints and lists; those of a trace have no ids.
bool same_lists(const core::ServicePort& a, const core::ServicePort& b) {
  const auto same = [](const core::Endpoint& x, const core::Endpoint& y) {
    return x.address == y.address && x.port == y.port && x.weight == y.weight;
  };
  return a.cluster == b.cluster && a.local == b.local &&
         std::equal(a.endpoints.begin(), a.endpoints.end(), b.endpoints.begin(), b.endpoints.end(),
                    same);
}

class Explainer {
 public:
  explicit Explainer(const ExplainInput& input) : input_(input) {}

  Explanation run() {
    describe_flow();
    out_.decision = core::explain(input_.table, input_.flow, out_.before);
    const core::Decision& d = out_.decision;
    if (d.service != nullptr && d.reason != core::DecisionReason::kSourceNotAllowed) {
      run_service_again();
      list_endpoints();
    }
    if (d.verdict == core::FlowVerdict::kForward) {
      describe_choice();
      describe_source_and_mode();
    }
    return std::move(out_);
  }

 private:
  void before(const char* rule, std::string text) {
    out_.before.push_back({rule, std::move(text)});
  }
  void after(const char* rule, std::string text) { out_.after.push_back({rule, std::move(text)}); }

  void describe_flow() {
    const core::FlowTuple& t = input_.flow.tuple;
    const std::string source =
        t.sport == 0 ? core::to_string(t.src) : core::to_string(t.src, t.sport);
    before("flow",
           std::string(core::protocol_name(t.protocol)) + " " + source + " to " +
               core::to_string(t.dst, t.dport) +
               (input_.flow.ingress.empty() ? ", made by a process of this host"
                                            : ", arriving by " + std::string(input_.flow.ingress)));
  }

  void run_service_again() {
    const core::ServicePort& block = *out_.decision.service;
    trace_.wanted = key_of(block);
    if (input_.state != nullptr) {
      const auto service = input_.state->services.find(trace_.wanted.service);
      if (service != input_.state->services.end()) {
        compile_traced(service->second);
      }
    }
    known_ = trace_.found && same_lists(trace_.block, block);
    if (!known_) {
      before("SY-2",
             "the cluster state is not the one this table was made from, so why an "
             "endpoint is in or out is not known; ask again");
    } else if (!wants_local_list()) {
      describe_topology();
    }
  }

  void compile_traced(const model::Service& service) {
    const auto own = input_.state->nodes.find(input_.config.node_name);
    node_ = resolve_node(input_.config, own == input_.state->nodes.end() ? nullptr : &own->second,
                         input_.profile);
    (void)compile_service(service, slices_of(*input_.state, service.name), node_, nullptr, &trace_);
  }

  [[nodiscard]] bool wants_local_list() const {
    const core::Decision& d = out_.decision;
    return d.reason == core::DecisionReason::kLocalPolicy ||
           d.reason == core::DecisionReason::kNoLocalEndpoints || !d.service->uses_cluster;
  }

  void describe_topology() {
    const TopologyChoice& choice = trace_.selection.topology;
    switch (choice.mode) {
      case TopologyMode::kSameNode:
        return before("T-3",
                      "topology same-node: every ready endpoint has a node hint and one "
                      "names " +
                          node_.node_name);
      case TopologyMode::kSameZone:
        return before("T-3",
                      "topology same-zone: every ready endpoint has a zone hint and one "
                      "names " +
                          node_.zone +
                          "; not same-node: " + reason(choice.same_node, "node", node_.node_name));
      case TopologyMode::kNone:
        return before("T-3", "topology none: " + reason(choice.same_node, "node", node_.node_name) +
                                 ", " + reason(choice.same_zone, "zone", node_.zone));
    }
  }

  static std::string reason(const HintLevel& level, const std::string& what,
                            const std::string& us) {
    if (level.without != nullptr) {
      return level.without->identity() + " has no " + what + " hint";
    }
    return "no " + what + " hint names " + (us.empty() ? "this node's, which has none" : us);
  }

  void list_endpoints() {
    const core::ServicePort& block = *out_.decision.service;
    const bool local = wants_local_list();
    const std::vector<core::EndpointIndex>& list = local ? block.local : block.cluster;
    const auto& admissions = local ? trace_.selection.local : trace_.selection.cluster;
    for (std::size_t i = 0; i < block.endpoints.size(); ++i) {
      const core::Endpoint& e = block.endpoints[i];
      ExplainedEndpoint row{e.address, e.port, false, {}, false, core::ForwardingMode::kByRule};
      if (known_ && i < admissions.size()) {
        row.candidate = admitted(admissions[i]);
        row.why = why(trace_.merged[i], admissions[i]);
        row.why.text += row.candidate && e.weight != 1 && core::picks_by_weight(block.scheduler)
                            ? ", weight " + std::to_string(e.weight)
                            : "";
      } else {
        const auto index = static_cast<core::EndpointIndex>(i);
        row.candidate = std::binary_search(list.begin(), list.end(), index);
        row.why = {"EP-2", "by the table"};
      }
      row.why.text =
          core::to_string(e.address, e.port) + (row.candidate ? " in: " : " out: ") + row.why.text;
      out_.endpoints.push_back(std::move(row));
    }
    if (block.endpoints.empty()) {
      before("EP-1", block.name + " has no endpoints at all");
    }
  }

  [[nodiscard]] core::Step why(const MergedEndpoint& e, Admission a) const {
    switch (a) {
      case Admission::kReady:
        return {"C-2", e.local ? "ready, on this node" : "ready"};
      case Admission::kFallback:
        return {"C-3", "terminating but serving, and no endpoint of the list is ready"};
      case Admission::kNotReady:
        return {"C-4", "not ready"};
      case Admission::kTerminating:
        return {"C-3", "terminating, and others are ready"};
      case Admission::kOtherNode:
        return {"T-5",
                "its hints name node " + join(e.source->for_nodes) + ", not " + node_.node_name};
      case Admission::kOtherZone:
        return {"T-5", "its hints name zone " + join(e.source->for_zones) + ", not " + node_.zone};
      case Admission::kNotLocal:
        return {"M-6", "on node " + e.source->node_name.value_or("(unknown)") + ", not on " +
                           node_.node_name};
      case Admission::kNoWeight:
        return {"weight", "weight 0"};
    }
    return {};
  }

  void describe_choice() {
    const core::Decision& d = out_.decision;
    const core::SchedulerKind kind = d.service->scheduler;
    after("EP-9", "scheduler " + core::scheduler_text(*d.service) + " over " +
                      std::to_string(d.eligible.size()) +
                      (d.eligible.size() == 1 ? " candidate" : " candidates") +
                      (core::picks_by_hash(kind)
                           ? ", a table of " + std::to_string(core::maglev_size_of(*d.service)) +
                                 " slots"
                           : ""));
    if (core::picks_by_weight(kind)) {
      describe_weights();
    }
    describe_hash();
    if (d.affinity_seconds == 0) {
      after("S-8", "no session affinity");
    } else {
      after("A-3", "session affinity by client address for " + std::to_string(d.affinity_seconds) +
                       " s: the candidate this client was sent to last comes before the scheduler");
    }
  }

  /// Nothing when all are alike.
  void describe_weights() {
    constexpr std::size_t kShown = 8;
    const core::Decision& d = out_.decision;
    std::string text;
    bool alike = true;
    for (std::size_t n = 0; n < d.eligible.size(); ++n) {
      const core::Endpoint& e = d.service->endpoint(d.eligible[n]);
      alike = alike && e.weight == d.service->endpoint(d.eligible[0]).weight;
      if (n < kShown) {
        text += (n == 0 ? "" : ", ") + core::to_string(e.address, e.port) + "=" +
                std::to_string(e.weight);
      }
    }
    if (!alike) {
      after("weight", "weights " + text + (d.eligible.size() > kShown ? ", ..." : ""));
    }
  }

  /// What mh, sh and dh choose follows from the flow alone.
  void describe_hash() {
    const core::Decision& d = out_.decision;
    const core::FlowTuple& tuple = input_.flow.tuple;
    const auto chosen = core::pick_by_hash(d, tuple);
    if (!chosen) {
      return;
    }
    const core::Endpoint& e = d.service->endpoint(*chosen);
    const bool destination = d.service->scheduler == core::SchedulerKind::kDh;
    const bool port = !destination && d.affinity_seconds == 0 &&
                      (d.service->scheduler_flags & core::kSchedPort) != 0;
    const std::string what = destination ? "destination address"
                             : port      ? "client address and port"
                                         : "client address";
    after("EP-9", port && tuple.sport == 0
                      ? "the client port, which is not known, has a part in the choice"
                      : "the " + what + " hashes to " + core::to_string(e.address, e.port));
  }

  void describe_source_and_mode() {
    const core::Decision& d = out_.decision;
    std::vector<core::Step> all;
    std::vector<core::Step> modes;
    for (const core::EndpointIndex i : d.eligible) {
      const core::Endpoint& e = d.service->endpoint(i);
      ExplainedEndpoint& row = out_.endpoints[static_cast<std::size_t>(i)];
      row.masquerade = core::explain_source(input_.table, d, input_.flow, e, all);
      row.mode = core::effective_mode(d, input_.flow, e);
      modes.push_back({"mode", mode_text(row.mode)});
    }
    all.insert(all.end(), modes.begin(), modes.end());
    for (core::Step& step : all) {  // most say the same of every endpoint
      if (std::find(out_.after.begin(), out_.after.end(), step) == out_.after.end()) {
        out_.after.push_back(std::move(step));
      }
    }
  }

  [[nodiscard]] std::string mode_text(core::ForwardingMode got) const {
    using Mode = core::ForwardingMode;
    const core::Decision& d = out_.decision;
    const Mode asked = d.service->mode;
    const std::string name(core::name_of(got));
    if (asked == Mode::kByRule) {
      return name + ": the source is " + (got == Mode::kFullNat ? "translated" : "kept");
    }
    const bool external = d.frontend != core::FrontendKind::kClusterIp;
    if (asked == got) {
      const bool overrides = external && asked != Mode::kFullNat &&
                             d.service->external_policy == core::TrafficPolicy::kCluster;
      return name + ": the Service asks for it" +
             (overrides ? ", which overrides the masquerade of external traffic (P-5)" : "");
    }
    return name + ": the Service asks for " + std::string(core::name_of(asked)) + ", but " +
           (got == Mode::kFullNat ? "the rules above translate the source"
                                  : "that is for external traffic, not for a cluster IP");
  }

  const ExplainInput& input_;
  Explanation out_;
  ServiceTrace trace_;
  NodeContext node_;
  bool known_ = false;  ///< the trace is about the table's own block
};

}  // namespace

std::shared_ptr<const model::ClusterState> part_for(const model::ClusterState& state,
                                                    const model::ObjectName& service,
                                                    const std::string& node_name) {
  model::ClusterState part;
  part.version = state.version;
  if (const auto at = state.services.find(service); at != state.services.end()) {
    part.services.insert(*at);
  }
  for (const model::EndpointSlice* slice : slices_of(state, service)) {
    part.slices.emplace(slice->name, *slice);
  }
  if (const auto at = state.nodes.find(node_name); at != state.nodes.end()) {
    part.nodes.insert(*at);
  }
  return std::make_shared<const model::ClusterState>(std::move(part));
}

model::ObjectName service_of(const core::ServicePort& block) {
  return key_of(block).service;
}

Explanation explain(const ExplainInput& input) {
  return Explainer(input).run();
}

std::string_view name_of(core::FlowVerdict verdict) noexcept {
  constexpr std::string_view kNames[] = {"forward", "reject", "drop", "pass"};
  return kNames[static_cast<std::size_t>(verdict)];
}

std::string verdict_text(const Explanation& explanation) {
  const core::Decision& d = explanation.decision;
  switch (d.verdict) {
    case core::FlowVerdict::kReject:
      return "reject: refused at once";
    case core::FlowVerdict::kDrop:
      return "drop: in silence";
    case core::FlowVerdict::kPass:
      return "pass: to the host or on its way, unchanged";
    case core::FlowVerdict::kForward:
      break;
  }
  std::vector<std::string> outcomes;
  std::string only;
  for (const ExplainedEndpoint& e : explanation.endpoints) {
    if (!e.candidate) {
      continue;
    }
    only = core::to_string(e.address, e.port);
    const std::string outcome = std::string(core::name_of(e.mode)) +
                                (e.masquerade ? ", source translated" : ", source kept");
    if (std::find(outcomes.begin(), outcomes.end(), outcome) == outcomes.end()) {
      outcomes.push_back(outcome);
    }
  }
  std::string text = "forward to ";
  text += d.eligible.size() == 1
              ? only
              : "one of " + std::to_string(d.eligible.size()) + " endpoints of " + d.service->name;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    text += (i == 0 ? ", mode " : " or ") + outcomes[i];
  }
  return text;
}

}  // namespace sluice::compile
