#include "test/conformance/explain_check.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "test/conformance/case_text.h"

namespace sluice::conformance {
namespace {

using Names = std::set<std::string>;

class Check {
 public:
  Check(const compile::ExplainInput& input, const core::Decision& decision, const Probe& probe)
      : input_(input), decision_(decision), probe_(probe), got_(compile::explain(input)) {}

  std::vector<std::string> run() {
    same("verdict", std::string(compile::name_of(decision_.verdict)),
         std::string(compile::name_of(got_.decision.verdict)));
    if (got_.decision.reason != decision_.reason || got_.decision.slot != decision_.slot ||
        got_.decision.service != decision_.service ||
        got_.decision.frontend != decision_.frontend ||
        got_.decision.masquerade != decision_.masquerade ||
        got_.decision.affinity_seconds != decision_.affinity_seconds) {
      failures_.push_back("another decision than decide()'s");
    }
    check_steps();
    check_endpoints();
    return std::move(failures_);
  }

 private:
  void same(const std::string& what, const std::string& wanted, const std::string& got) {
    if (wanted != got) {
      failures_.push_back(what + ": expected " + wanted + ", got " + got);
    }
  }

  void check_steps() {
    for (const auto* list : {&got_.before, &got_.after}) {
      for (const core::Step& step : *list) {
        if (step.rule.empty() || step.text.empty() || step.text.find('\n') != std::string::npos) {
          failures_.push_back("a step that is not one line with a rule: " + step.text);
        }
        if (step.rule == "SY-2") {
          failures_.push_back("the reasons of the endpoints were not known");
        }
      }
    }
    if (got_.before.size() < 2) {
      failures_.push_back("no step says what led to the verdict");
    }
  }

  void check_endpoints() {
    Names candidates;
    for (const compile::ExplainedEndpoint& e : got_.endpoints) {
      if (e.why.rule.empty() || e.why.text.empty()) {
        failures_.push_back("an endpoint without a reason");
      }
      if (e.candidate) {
        candidates.insert(core::to_string(e.address, e.port));
      }
    }
    if (decision_.verdict != core::FlowVerdict::kForward) {
      same("candidates", "{}", join(candidates));
      return;
    }
    Names decided;
    for (const core::EndpointIndex i : decision_.eligible) {
      decided.insert(check_source(i));
    }
    same("candidates of decide()", join(decided), join(candidates));
    if (probe_.verdict == "forward" && probe_.endpoints) {
      same("candidates", join({probe_.endpoints->begin(), probe_.endpoints->end()}),
           join(candidates));
    }
  }

  /// @return name of the endpoint.
  std::string check_source(core::EndpointIndex i) {
    const core::Endpoint& e = decision_.service->endpoint(i);
    const std::string name = core::to_string(e.address, e.port);
    const auto row = std::find_if(got_.endpoints.begin(), got_.endpoints.end(), [&](const auto& r) {
      return r.address == e.address && r.port == e.port;
    });
    if (row == got_.endpoints.end()) {
      failures_.push_back(name + " is missing");
      return name;
    }
    const bool translated = core::source_is_translated(decision_, input_.flow, e);
    same(name + " source of decide()", text(translated), text(row->masquerade));
    const auto special = probe_.snat_if_endpoint.find(name);
    const std::string& wanted =
        special != probe_.snat_if_endpoint.end() ? special->second : probe_.snat;
    if (!wanted.empty() && probe_.verdict == "forward") {
      same(name + " source", wanted, text(row->masquerade));
    }
    if (row->mode != core::effective_mode(decision_, input_.flow, e)) {
      failures_.push_back(name + ": another forwarding mode");
    }
    return name;
  }

  static std::string text(bool translated) { return translated ? "masquerade" : "none"; }

  const compile::ExplainInput& input_;
  const core::Decision& decision_;
  const Probe& probe_;
  const compile::Explanation got_;
  std::vector<std::string> failures_;
};

}  // namespace

std::vector<std::string> check_explain(const compile::ExplainInput& input,
                                       const core::Decision& decision, const Probe& probe) {
  return Check(input, decision, probe).run();
}

}  // namespace sluice::conformance
