#include "test/conformance/nftables_subject.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <future>
#include <map>
#include <set>
#include <thread>
#include <utility>

#include "test/conformance/case_cluster.h"
#include "test/conformance/kernel_conntrack.h"
#include "test/conformance/kernel_probe.h"
#include "test/conformance/net_namespace_set.h"
#include "test/conformance/nftables_node.h"
#include "test/conformance/socket_flow.h"

namespace sluice::conformance {
namespace {

/// Runs of a case with a probe that no pin applies to.
constexpr std::size_t kRunsOfFree = 24;

std::vector<std::string> interfaces_of(const Case& c) {
  std::vector<std::string> names;
  for (const Step& step : c.steps) {
    const auto* probe = std::get_if<Probe>(&step);
    if (probe != nullptr && !probe->iface.empty()) {
      names.push_back(probe->iface);
    }
  }
  return names;
}

bool any_probe(const Case& c, const std::function<bool(const Probe&)>& is) {
  return std::any_of(c.steps.begin(), c.steps.end(), [&](const Step& step) {
    const auto* probe = std::get_if<Probe>(&step);
    return probe != nullptr && is(*probe);
  });
}

bool has_step(const Case& c, const std::string& kind) {
  return std::any_of(c.steps.begin(), c.steps.end(), [&](const Step& step) {
    const auto* host = std::get_if<HostStep>(&step);
    return host != nullptr && host->kind == kind;
  });
}

/// The kernel remembers sources in real time; everything else has the case's own time.
bool waits(const Case& c) {
  const bool remembers = std::any_of(c.services.begin(), c.services.end(), [](const auto& s) {
    return s.session_affinity == "ClientIP";
  });
  return remembers && std::any_of(c.steps.begin(), c.steps.end(), [](const Step& step) {
           return std::holds_alternative<Advance>(step);
         });
}

/// One case in progress, on a thread of its own, which lives in the node's namespace.
class Run {
 public:
  explicit Run(const Case& c)
      : case_(c),
        net_(interfaces_of(c)),
        sockets_(net_, [this] { return node_.refusals(); }),
        probes_(
            net_, sockets_, node_.memory(),
            !any_probe(
                c, [](const Probe& p) { return !p.pick.empty() || !p.same_as.empty() || p.free; })),
        cluster_(c, has_step(c, "http") || has_step(c, "healthCheck"),
                 [this](const compile::Compiled& now) { put_in_force(now); }) {
    net_.set_node_addresses(c.node.host_addresses);
    cluster_.start();
  }

  Outcome finish() {
    for (const Step& step : case_.steps) {
      std::visit([this](const auto& s) { perform(s); }, step);
    }
    for (const std::string& failure : cluster_.failures()) {
      fail(failure);
    }
    return std::move(outcome_);
  }

  [[nodiscard]] const std::vector<std::string>& choices() const { return choices_; }

 private:
  void put_in_force(const compile::Compiled& now) {
    if (started_) {
      net_.set_node_addresses(addresses_ ? *addresses_ : cluster_.node().host_addresses);
    }
    started_ = true;
    for (const std::string& failure : node_.apply(now.table)) {
      fail(failure);
    }
    serve_endpoints(*now.table);
  }

  void serve_endpoints(const core::ForwardingTable& table) {
    for (std::uint32_t i = 0; i < table.slot_limit(); ++i) {
      const auto* service = table.service(static_cast<core::ServiceSlot>(i));
      if (service == nullptr) {
        continue;
      }
      for (const core::Endpoint& e : service->endpoints) {
        if (!net_.is_node_address(e.address) && placed_.insert(e.address).second) {
          net_.place(e.address, e.local ? NetNamespaceSet::kPods : NetNamespaceSet::kElsewhere);
        }
        sockets_.serve(service->protocol, {e.address, e.port});
      }
    }
  }

  void perform(const Apply& step) { cluster_.perform(step); }
  void perform(const Delete& step) { cluster_.perform(step); }
  void perform(const Synced& step) { cluster_.perform(step); }
  void perform(const Unsynced&) {}  // the run began with it
  void perform(const Advance& step) {
    if (waits(case_)) {
      std::this_thread::sleep_for(std::chrono::duration<double>(step.seconds));
    }
    cluster_.advance(step.seconds);
  }

  void perform(const HostStep& step) {
    const auto failures = step.kind == "conntrack" ? std::optional(conntrack_.perform(step.value))
                                                   : cluster_.perform(step);
    if (!failures) {
      skip("'" + step.kind + "' asks a server or an adapter that this is not");
      return;
    }
    for (const std::string& failure : *failures) {
      fail(failure);
    }
  }

  void perform(const Probe& probe) {
    choices_.emplace_back();
    const auto src = core::parse_address(probe.from_ip);
    if (!src || !core::parse_address(probe.to)) {
      fail("probe: expected addresses, got unparsable ones");
      return;
    }
    // A host process owns its address at that moment, listed or not.
    const bool more = probe.from_kind == "node" && !net_.is_node_address(*src);
    if (more) {
      addresses_ = cluster_.node().host_addresses;
      addresses_->push_back(*src);
      net_.set_node_addresses(*addresses_);
      cluster_.own_also(*src);
    }
    for (const std::string& failure : probes_.judge(probe)) {
      fail(failure);
    }
    choices_.back() = probes_.chosen();
    if (more) {
      addresses_.reset();
      net_.set_node_addresses(cluster_.node().host_addresses);
      cluster_.own_also(std::nullopt);
    }
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
  NetNamespaceSet net_;
  NftablesNode node_;
  KernelConntrack conntrack_;
  SocketNet sockets_;
  KernelProbeJudge probes_;
  std::set<core::IpAddress> placed_;
  std::optional<std::vector<core::IpAddress>> addresses_;  ///< of the node while one is added
  bool started_ = false;
  std::vector<std::string> choices_;
  Outcome outcome_;
  CaseCluster cluster_;
};

struct RunResult {
  Outcome outcome;
  std::vector<std::string> choices;
};

RunResult run_once(const Case& c) {
  RunResult result;
  std::thread inside([&] {
    try {
      Run run(c);
      result.outcome = run.finish();
      result.choices = run.choices();
    } catch (const std::exception& e) {
      result.outcome.failures.emplace_back(e.what());
    }
  });
  inside.join();
  return result;
}

std::string address_part(const std::string& endpoint) {
  return endpoint.substr(0, endpoint.rfind(':'));
}

/// A probe to which no pin applies comes to every endpoint, and its choice does not follow from
/// that of any probe before.
void judge_free(const Case& c, const std::vector<RunResult>& runs, Outcome& outcome) {
  std::size_t index = 0;
  for (const Step& step : c.steps) {
    const auto* probe = std::get_if<Probe>(&step);
    if (probe == nullptr) {
      continue;
    }
    const std::size_t i = index++;
    if (!probe->free || !probe->endpoints || probe->endpoints->size() < 2) {
      continue;
    }
    std::set<std::string> got;
    for (const RunResult& run : runs) {
      got.insert(run.choices.at(i));
    }
    if (got != std::set<std::string>(probe->endpoints->begin(), probe->endpoints->end())) {
      outcome.failures.push_back("probe " + std::to_string(i + 1) +
                                 " without a pin: expected every endpoint, got " +
                                 std::to_string(got.size()) + " " + rules_text(c));
    }
    for (std::size_t before = 0; before < i; ++before) {
      const bool follows = std::all_of(runs.begin(), runs.end(), [&](const RunResult& run) {
        return address_part(run.choices.at(i)) == address_part(run.choices.at(before));
      });
      if (follows) {
        outcome.failures.push_back(
            "probe " + std::to_string(i + 1) +
            " without a pin: expected free, got always the endpoint of probe " +
            std::to_string(before + 1) + " " + rules_text(c));
      }
    }
  }
}

/// A case whole; those that wait run their repetitions side by side.
Outcome run_case(const Case& c) {
  const bool free = any_probe(c, [](const Probe& p) { return p.free; });
  std::vector<std::future<RunResult>> started;
  const auto policy = waits(c) ? std::launch::async : std::launch::deferred;
  for (std::size_t i = 0; i < (free ? kRunsOfFree : 1); ++i) {
    started.push_back(std::async(policy, [&c] { return run_once(c); }));
  }
  std::vector<RunResult> runs;
  for (auto& run : started) {
    runs.push_back(run.get());
  }
  for (const RunResult& run : runs) {
    if (!run.outcome.failures.empty()) {
      return run.outcome;
    }
  }
  Outcome outcome = runs.front().outcome;
  judge_free(c, runs, outcome);
  return outcome;
}

class NftablesSubject : public Subject {
 public:
  [[nodiscard]] std::vector<std::string_view> modes() const override { return {"nftables"}; }

  /// Cases that wait in real time begin at once and go on beside the others.
  void prepare(const std::vector<const Case*>& cases) override {
    for (const Case* c : cases) {
      if (waits(*c) && !why_not(*c)) {
        waiting_[c] = std::async(std::launch::async, [c] { return run_case(*c); });
      }
    }
  }

  [[nodiscard]] Outcome run(const Case& c) override {
    if (const auto found = waiting_.find(&c); found != waiting_.end()) {
      return found->second.get();
    }
    Outcome outcome;
    outcome.not_applicable = why_not(c);
    if (outcome.not_applicable) {
      return outcome;
    }
    outcome = run_case(c);
    if (c.asks_functions) {
      outcome.skipped.emplace_back("'compute' and 'sync' ask functions, not the kernel");
    }
    return outcome;
  }

 private:
  static std::optional<std::string> why_not(const Case& c) {
    if (c.renders) {
      return "'render' is of other adapters";
    }
    if (c.asks_functions && c.steps.empty()) {
      return "'compute' and 'sync' ask functions, not the kernel";
    }
    return std::nullopt;
  }

  std::map<const Case*, std::future<Outcome>> waiting_;
};

}  // namespace

std::unique_ptr<Subject> make_nftables_subject() {
  return std::make_unique<NftablesSubject>();
}

}  // namespace sluice::conformance
