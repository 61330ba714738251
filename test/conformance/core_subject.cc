#include "test/conformance/core_subject.h"

#include <algorithm>
#include <exception>
#include <set>
#include <utility>

#include "dataplane/core/fwd/decide.h"
#include "dataplane/core/sched/pick.h"
#include "test/conformance/affinity_memory.h"
#include "test/conformance/case_cluster.h"
#include "test/conformance/case_text.h"
#include "test/conformance/compute_cases.h"
#include "test/conformance/explain_check.h"
#include "test/support/net_namespace.h"

namespace sluice::conformance {
namespace {

/// Name of the interface of a probe that gives none: not empty, because the packet arrives.
constexpr const char* kAnyInterface = "if-any";
constexpr std::uint16_t kAnyPort = 40000;
/// Picks per candidate; a uniform pick misses one of n in 32 n draws with probability below e^-32.
constexpr std::size_t kPicksPerCandidate = 32;

std::string text_of(core::FlowVerdict verdict) {
  switch (verdict) {
    case core::FlowVerdict::kForward:
      return "forward";
    case core::FlowVerdict::kReject:
      return "reject";
    case core::FlowVerdict::kDrop:
      return "drop";
    case core::FlowVerdict::kPass:
      return "pass";
  }
  return "?";
}

/// One case in progress.
class Run {
 public:
  Run(const Case& c, bool sockets)
      : case_(c), cluster_({.sockets = sockets}, c, [this](const compile::Compiled& now) {
          memory_.forget_departed(*now.table);
        }) {
    cluster_.start();
  }

  Outcome finish() {
    for (const Step& step : case_.steps) {
      std::visit([this](const auto& s) { perform(s); }, step);
    }
    const auto& failures = cluster_.failures();
    outcome_.failures.insert(outcome_.failures.end(), failures.begin(), failures.end());
    return std::move(outcome_);
  }

 private:
  void perform(const Apply& step) { cluster_.perform(step); }
  void perform(const Delete& step) { cluster_.perform(step); }
  void perform(const Synced& step) { cluster_.perform(step); }
  void perform(const Unsynced&) {}  // the run began with it
  void perform(const Advance& step) {
    memory_.advance(step.seconds);
    cluster_.advance(step.seconds);
  }
  void perform(const HostStep& step) {
    const auto failures = cluster_.perform(step);
    if (!failures) {
      outcome_.not_applicable = "'" + step.kind + "' asks a server or an adapter that core is not";
      return;
    }
    for (const std::string& failure : *failures) {
      outcome_.failures.push_back(failure + " " + rules_text(case_));
    }
  }

  void perform(const Probe& probe) {
    const auto src = core::parse_address(probe.from_ip);
    const auto dst = core::parse_address(probe.to);
    if (!src || !dst) {
      fail("probe", "addresses", "unparsable");
      return;
    }
    if (cluster_.in_force().table == nullptr) {
      expect("probe before the first table", probe.verdict, "pass");
      return;
    }
    // A host process owns its address at that moment, listed or not.
    const core::TablePtr table =
        probe.from_kind == "node" ? cluster_.table_with_local(*src) : cluster_.in_force().table;
    core::Flow flow;
    flow.tuple = {*src, *dst, probe.sport != 0 ? probe.sport : kAnyPort, probe.port,
                  protocol_of(probe.protocol)};
    const std::string iface = probe.iface.empty() ? kAnyInterface : probe.iface;
    flow.ingress = probe.from_kind == "node" ? std::string_view{} : std::string_view{iface};
    const core::Decision decision = core::decide(*table, flow);
    const std::string what = probe.from_kind + " " + probe.from_ip + " -> " + probe.to + ":" +
                             std::to_string(probe.port) + "/" + probe.protocol;
    expect(what, probe.verdict, text_of(decision.verdict));
    const compile::ExplainInput asked{*table, flow, &cluster_.state(), cluster_.node().config,
                                      compile::Profile::kNftables};
    for (const std::string& failure : check_explain(asked, decision, probe)) {
      outcome_.failures.push_back(what + " explain: " + failure + " " + rules_text(case_));
    }
    if (probe.verdict == "forward" && decision.verdict == core::FlowVerdict::kForward) {
      judge_forward(probe, flow, decision, what);
    }
  }

  void judge_forward(const Probe& probe, const core::Flow& flow, const core::Decision& decision,
                     const std::string& what) {
    std::set<std::string> got;
    for (const core::EndpointIndex i : decision.eligible) {
      const core::Endpoint& e = decision.service->endpoint(i);
      const std::string identity = core::to_string(e.address, e.port);
      got.insert(identity);
      judge_source(probe, flow, decision, e, what + " to " + identity);
    }
    if (probe.endpoints) {
      expect(what + " endpoints", join({probe.endpoints->begin(), probe.endpoints->end()}),
             join(got));
    }
    if (!probe.affinity.empty()) {
      expect(what + " affinity", probe.affinity,
             decision.affinity_seconds == 0 ? "none" : std::to_string(decision.affinity_seconds));
    }
    judge_picks(flow, decision, what);
    choose(probe, flow, decision, what);
  }

  void judge_source(const Probe& probe, const core::Flow& flow, const core::Decision& decision,
                    const core::Endpoint& endpoint, const std::string& what) {
    const auto special =
        probe.snat_if_endpoint.find(core::to_string(endpoint.address, endpoint.port));
    const std::string& wanted =
        special != probe.snat_if_endpoint.end() ? special->second : probe.snat;
    if (wanted.empty()) {
      return;
    }
    const bool translated = core::source_is_translated(decision, flow, endpoint);
    expect(what + " snat", wanted, translated ? "masquerade" : "none");
    const auto mode = core::effective_mode(decision, flow, endpoint);
    expect(what + " mode", translated ? "fullnat" : "nat",
           mode == core::ForwardingMode::kFullNat ? "fullnat" : "nat");
  }

  /// Every candidate is reached by the scheduler and nothing else is.
  void judge_picks(const core::Flow& flow, const core::Decision& decision,
                   const std::string& what) {
    std::set<core::EndpointIndex> picked;
    for (std::size_t i = 0; i < decision.eligible.size() * kPicksPerCandidate; ++i) {
      picked.insert(core::pick(decision, flow.tuple, 0, scheduler_));
    }
    const std::set<core::EndpointIndex> all(decision.eligible.begin(), decision.eligible.end());
    expect(what + " picks", std::to_string(all.size()), std::to_string(picked.size()));
    if (picked != all) {
      fail(what, "picks of the candidates only", "others");
    }
  }

  void choose(const Probe& probe, const core::Flow& flow, const core::Decision& decision,
              const std::string& what) {
    core::EndpointIndex chosen = core::EndpointIndex::kNone;
    if (decision.affinity_seconds != 0) {
      chosen = memory_.find(decision, flow.tuple.src);
    }
    if (probe.free) {
      expect(what + " pin", "none", chosen == core::EndpointIndex::kNone ? "none" : "one");
    }
    if (chosen == core::EndpointIndex::kNone) {
      chosen = core::pick(decision, flow.tuple, 0, scheduler_);
    }
    if (decision.affinity_seconds != 0) {
      memory_.record(decision, flow.tuple.src, chosen);
    }
    const core::Endpoint& e = decision.service->endpoint(chosen);
    const std::string identity = core::to_string(e.address, e.port);
    if (!probe.pick.empty()) {
      picks_[probe.pick] = identity;
    }
    if (!probe.same_as.empty()) {
      expect(what + " same endpoint as '" + probe.same_as + "'", picks_[probe.same_as], identity);
    }
  }

  void expect(const std::string& what, const std::string& wanted, const std::string& got) {
    if (wanted != got) {
      fail(what, wanted, got);
    }
  }

  void fail(const std::string& what, const std::string& wanted, const std::string& got) {
    outcome_.failures.push_back(what + ": expected " + wanted + ", got " + got + " " +
                                rules_text(case_));
  }

  const Case& case_;
  core::SchedulerState scheduler_{1024, 0, 1, 1};
  AffinityMemory memory_;
  std::map<std::string, std::string> picks_;
  Outcome outcome_;
  CaseCluster cluster_;
};

/// The case asks servers, so it needs sockets.
bool needs_sockets(const Case& c) {
  return std::any_of(c.steps.begin(), c.steps.end(), [](const Step& step) {
    const auto* host = std::get_if<HostStep>(&step);
    return host != nullptr && (host->kind == "http" || host->kind == "healthCheck");
  });
}

Outcome run_with_sockets(const Case& c) {
  Outcome outcome;
  const auto ran = test::in_network_namespace(c.node.host_addresses, [&] {
    try {
      outcome = Run(c, true).finish();
    } catch (const std::exception& e) {
      outcome.failures.push_back(e.what());
    }
  });
  if (!ran) {
    outcome.not_applicable = ran.error().message;
  }
  return outcome;
}

void ask_functions(const Case& c, Outcome& outcome) {
  ComputeOutcome computed = run_compute_case(c.yaml);
  for (std::string& failure : computed.failures) {
    outcome.failures.push_back(std::move(failure));
  }
  if (computed.not_applicable) {
    outcome.not_applicable = std::move(computed.not_applicable);
  }
}

class CoreSubject : public Subject {
 public:
  [[nodiscard]] std::vector<std::string_view> modes() const override {
    return {"nftables", "control-plane"};
  }
  [[nodiscard]] Outcome run(const Case& c) override {
    Outcome outcome;
    if (c.renders) {
      outcome.not_applicable = "'render' is an adapter's";
      return outcome;
    }
    outcome = needs_sockets(c) ? run_with_sockets(c) : Run(c, false).finish();
    if (c.asks_functions) {
      ask_functions(c, outcome);
    }
    return outcome;
  }
};

}  // namespace

std::unique_ptr<Subject> make_core_subject() {
  return std::make_unique<CoreSubject>();
}

}  // namespace sluice::conformance
