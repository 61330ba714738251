#include "test/conformance/dpdk_subject.h"

#include <algorithm>
#include <exception>
#include <set>
#include <utility>

#include "test/conformance/case_cluster.h"
#include "test/conformance/wire_conntrack.h"
#include "test/conformance/wire_node.h"
#include "test/conformance/wire_probe.h"

namespace sluice::conformance {
namespace {

/// Interface of a probe that names none: the packet arrives by some port.
constexpr const char* kAnyInterface = "if-any";
/// Runs of a case with a probe that no pin applies to, each with other random choices.
constexpr std::uint64_t kRunsOfFree = 24;

std::vector<std::string> interfaces_of(const Case& c) {
  std::vector<std::string> names = {kAnyInterface};
  for (const Step& step : c.steps) {
    const auto* probe = std::get_if<Probe>(&step);
    if (probe != nullptr && !probe->iface.empty() &&
        std::find(names.begin(), names.end(), probe->iface) == names.end()) {
      names.push_back(probe->iface);
    }
  }
  return names;
}

/// One case in progress on one node.
class Run {
 public:
  Run(const Case& c, std::uint64_t seed, bool thorough)
      : case_(c),
        config_{interfaces_of(c), seed},
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
        cluster_(c, false, [this](const compile::Compiled& now) { put_in_force(now); }) {
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
      skip("'" + step.kind + "' asks a server or an adapter that a worker is not");
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
      skip(probe.from_ip + " -> " + probe.to + ": a host process to the host's own address");
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
      skip(reason);
    }
    for (const std::string& failure : result.failures) {
      fail(failure);
    }
    judged_ += result.judged;
  }

  void skip(const std::string& reason) {
    auto& all = outcome_.skipped;
    if (std::find(all.begin(), all.end(), reason) == all.end()) {
      all.push_back(reason);
    }
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

std::string address_part(const std::string& endpoint) {
  return endpoint.substr(0, endpoint.rfind(':'));
}

/// What one run cannot show: a probe to which no pin applies comes to every endpoint, and its
/// choice does not follow from that of any probe before.
class FreeProbes {
 public:
  explicit FreeProbes(const Case& c) {
    for (const Step& step : c.steps) {
      if (const auto* probe = std::get_if<Probe>(&step)) {
        probes_.push_back(probe);
      }
    }
  }
  [[nodiscard]] bool any() const {
    return std::any_of(probes_.begin(), probes_.end(), [](const Probe* p) { return p->free; });
  }
  void add(std::vector<std::string> choices) { runs_.push_back(std::move(choices)); }

  [[nodiscard]] std::vector<std::string> failures() const {
    std::vector<std::string> out;
    for (std::size_t i = 0; i < probes_.size(); ++i) {
      if (probes_[i]->free && probes_[i]->endpoints && probes_[i]->endpoints->size() > 1) {
        judge(i, out);
      }
    }
    return out;
  }

 private:
  void judge(std::size_t i, std::vector<std::string>& out) const {
    const std::string what = "probe " + std::to_string(i + 1) + " without a pin: ";
    std::set<std::string> got;
    for (const auto& run : runs_) {
      got.insert(run[i]);
    }
    if (got !=
        std::set<std::string>(probes_[i]->endpoints->begin(), probes_[i]->endpoints->end())) {
      out.push_back(what + "expected every endpoint in " + std::to_string(runs_.size()) +
                    " runs, got " + std::to_string(got.size()));
    }
    for (std::size_t before = 0; before < i; ++before) {
      const bool follows = std::all_of(runs_.begin(), runs_.end(), [&](const auto& run) {
        return address_part(run[i]) == address_part(run[before]);
      });
      if (follows) {
        out.push_back(what + "expected free, got always the endpoint of probe " +
                      std::to_string(before + 1));
      }
    }
  }

  std::vector<const Probe*> probes_;
  std::vector<std::vector<std::string>> runs_;
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
    for (std::uint64_t seed = 2; seed < 2 + kRunsOfFree; ++seed) {
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
