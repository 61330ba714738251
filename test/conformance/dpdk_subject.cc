#include "test/conformance/dpdk_subject.h"

#include <algorithm>
#include <utility>

#include "test/conformance/case_cluster.h"
#include "test/conformance/case_probes.h"
#include "test/conformance/wire_conntrack.h"
#include "test/conformance/wire_node.h"
#include "test/conformance/wire_probe.h"

namespace sluice::conformance {
namespace {

/// Interface of a probe that names none: the packet arrives by some port.
constexpr const char* kAnyInterface = "if-any";
std::vector<std::string> ports_of(const Case& c) {
  std::vector<std::string> names = interfaces_of(c);
  names.insert(names.begin(), kAnyInterface);
  return names;
}

/// One case in progress on one node.
class Run {
 public:
  Run(const Case& c, std::uint64_t seed, bool thorough)
      : case_(c),
        config_{ports_of(c), seed},
        node_(config_),
        probes_(
            node_, [this] { return fresh_node(); }, thorough),
        conntrack_(
            node_, probes_,
            [this](const core::IpAddress& endpoint, std::uint16_t port,
                   const std::function<void()>& body) {
              cluster_.in_the_past(endpoint, port, body);
            },
            [this](const std::string& e) { return cluster_.has_endpoint(e); }),
        cluster_({}, c, [this](const compile::Compiled& now) { put_in_force(now); }) {
    node_.set_addresses(c.node.host_addresses);
    cluster_.start();
  }

  Outcome finish() {
    for (const Step& step : case_.steps) {
      std::visit([this](const auto& s) { perform(s); }, step);
    }
    for (const std::string& failure : cluster_.failures()) {
      fail(failure);
    }
    if (const std::string wrong = node_.balance_error(); !wrong.empty()) {
      fail("frame balance: " + wrong);
    }
    if (judged_ == 0) {
      outcome_.not_applicable =
          outcome_.skipped.empty() ? "no packet in it" : outcome_.skipped.front();
    }
    return std::move(outcome_);
  }

  /// Endpoints of the first flows of all probes, in order; "": not forwarded.
  [[nodiscard]] const std::vector<std::string>& choices() const { return choices_; }

 private:
  void put_in_force(const compile::Compiled& now) {
    node_.set_addresses(cluster_.node().host_addresses);
    table_ = now.table;
    node_.apply(table_);
  }

  std::unique_ptr<WireNode> fresh_node() {
    WireNode::Config config = config_;
    config.connections = 1024;
    auto node = std::make_unique<WireNode>(config);
    node->set_addresses(addresses_now_);
    node->apply(table_);
    return node;
  }

  void perform(const Apply& step) { cluster_.perform(step); }
  void perform(const Delete& step) { cluster_.perform(step); }
  void perform(const Synced& step) { cluster_.perform(step); }
  void perform(const Unsynced&) {}  // the run began with it
  void perform(const Advance& step) {
    node_.advance(step.seconds);
    cluster_.advance(step.seconds);
  }

  void perform(const HostStep& step) {
    if (step.kind == "conntrack") {
      take(conntrack_.perform(step.value));
    } else if (step.kind != "syncFailure") {
      outcome_.skip("'" + step.kind + "' asks a server or an adapter that a worker is not");
    } else if (!cluster_.perform(step)) {
      fail("the sync loop knows no step '" + step.kind + "'");
    }
  }

  void perform(const Probe& probe) {
    choices_.emplace_back();
    const auto src = core::parse_address(probe.from_ip);
    const auto dst = core::parse_address(probe.to);
    if (!src || !dst) {
      fail("probe: expected addresses, got unparsable ones");
      return;
    }
    const bool from_host = probe.from_kind == "node";
    if (from_host && (dst->is_loopback() || *src == *dst || node_.has_address(*dst))) {
      outcome_.skip(probe.from_ip + " -> " + probe.to + ": a host process to the host's own address");
      return;
    }
    ++judged_;
    addresses_now_ = cluster_.node().host_addresses;
    // A host process owns its address at that moment, listed or not.
    const bool more = from_host && !node_.has_address(*src);
    if (more) {
      addresses_now_.push_back(*src);
      cluster_.own_also(*src);
    }
    node_.set_addresses(addresses_now_);
    for (const std::string& failure : probes_.judge(probe)) {
      fail(failure);
    }
    choices_.back() = probes_.chosen();
    if (more) {
      cluster_.own_also(std::nullopt);
    }
  }

  void take(const WireConntrack::Result& result) {
    for (const std::string& reason : result.skipped) {
      outcome_.skip(reason);
    }
    for (const std::string& failure : result.failures) {
      fail(failure);
    }
    judged_ += result.judged;
  }

  void fail(const std::string& what) {
    outcome_.failures.push_back(what + " " + rules_text(case_));
  }

  const Case& case_;
  const WireNode::Config config_;
  WireNode node_;
  ProbeJudge probes_;
  WireConntrack conntrack_;
  core::TablePtr table_;  ///< in force
  std::vector<core::IpAddress> addresses_now_;
  std::vector<std::string> choices_;
  std::size_t judged_ = 0;
  Outcome outcome_;
  CaseCluster cluster_;
};

class DpdkSubject : public Subject {
 public:
  [[nodiscard]] std::vector<std::string_view> modes() const override {
    return {"nftables", "control-plane"};
  }

  [[nodiscard]] Outcome run(const Case& c) override {
    Outcome outcome;
    if (c.renders) {
      outcome.not_applicable = "'render' is an adapter's";
    } else if (c.asks_functions && c.steps.empty()) {
      outcome.not_applicable = "'compute' and 'sync' ask functions, not packets";
    } else {
      outcome = Run(c, 1, true).finish();
      if (c.asks_functions) {
        outcome.skipped.emplace_back("'compute' and 'sync' ask functions, not packets");
      }
      run_again(c, outcome);
    }
    return outcome;
  }

 private:
  static void run_again(const Case& c, Outcome& outcome) {
    FreeProbes free(c);
    if (!free.any() || !outcome.failures.empty()) {
      return;
    }
    for (std::uint64_t seed = 2; seed <= kRunsOfFree; ++seed) {
      Run run(c, seed, false);
      const Outcome again = run.finish();
      if (!again.failures.empty()) {
        outcome.failures = again.failures;
        return;
      }
      free.add(run.choices());
    }
    for (const std::string& failure : free.failures()) {
      outcome.failures.push_back(failure + " " + rules_text(c));
    }
  }
};

}  // namespace

std::unique_ptr<Subject> make_dpdk_subject() {
  return std::make_unique<DpdkSubject>();
}

}  // namespace sluice::conformance
