#include "test/conformance/kernel_subject.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <future>
#include <map>
#include <set>
#include <thread>
#include <utility>

#include "test/conformance/case_cluster.h"
#include "test/conformance/case_probes.h"
#include "test/conformance/kernel_conntrack.h"
#include "test/conformance/kernel_probe.h"
#include "test/conformance/net_namespace_set.h"
#include "test/conformance/socket_flow.h"

namespace sluice::conformance {
namespace {

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

bool depends_on_another(const Probe& p) {
  return !p.pick.empty() || !p.same_as.empty() || p.free;
}

/// One case in progress, on a thread of its own, which lives in the node's namespace.
class Run {
 public:
  Run(const Case& c, const KernelAdapter& adapter)
      : case_(c),
        net_(interfaces_of(c)),
        node_(adapter.make(c.node)),
        sockets_(net_, [this](core::Family family) { return node_->refusals(family); }),
        probes_(net_, sockets_, *node_, !any_probe(c, depends_on_another)),
        cluster_({.profile = adapter.profile,
                  .sockets = has_step(c, "http") || has_step(c, "healthCheck")},
                 c, [this](const compile::Compiled& now) { put_in_force(now); }) {
    net_.set_node_addresses(c.node.host_addresses);
    cluster_.start();
  }

  Outcome finish() {
    for (const Step& step : case_.steps) {
      std::visit([this](const auto& s) { perform(s); }, step);
    }
    for (const YAML::Node& written : case_.yaml["render"]) {
      judge_written("render", written);
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
    for (const std::string& failure : node_->apply(now.table)) {
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
    if (step.kind == "restore") {
      judge_written(step.kind, step.value);
    } else if (step.kind == "conntrack") {
      take(step.kind, conntrack_.perform(step.value));
    } else {
      take(step.kind, cluster_.perform(step));
    }
  }

  void judge_written(const std::string& kind, const YAML::Node& value) {
    take(kind, node_->judge(kind, value));
  }

  void take(const std::string& kind, const std::optional<std::vector<std::string>>& failures) {
    if (!failures) {
      outcome_.skip("'" + kind + "' asks a server or an adapter that this is not");
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

  void fail(const std::string& what) {
    outcome_.failures.push_back(what + " " + rules_text(case_));
  }

  const Case& case_;
  NetNamespaceSet net_;
  std::unique_ptr<KernelNode> node_;
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

RunResult run_once(const Case& c, const KernelAdapter& adapter) {
  RunResult result;
  std::thread inside([&] {
    try {
      Run run(c, adapter);
      result.outcome = run.finish();
      result.choices = run.choices();
    } catch (const std::exception& e) {
      result.outcome.failures.emplace_back(e.what());
    }
  });
  inside.join();
  return result;
}

/// A case whole; those that wait run their repetitions side by side.
Outcome run_case(const Case& c, const KernelAdapter& adapter) {
  FreeProbes free(c);
  std::vector<std::future<RunResult>> started;
  const auto policy = waits(c) ? std::launch::async : std::launch::deferred;
  for (std::size_t i = 0; i < (free.any() ? kRunsOfFree : 1); ++i) {
    started.push_back(std::async(policy, [&] { return run_once(c, adapter); }));
  }
  std::vector<RunResult> runs;
  for (auto& run : started) {
    runs.push_back(run.get());
  }
  for (RunResult& run : runs) {
    if (!run.outcome.failures.empty()) {
      return run.outcome;
    }
    free.add(std::move(run.choices));
  }
  Outcome outcome = std::move(runs.front().outcome);
  for (const std::string& failure : free.failures()) {
    outcome.failures.push_back(failure + " " + rules_text(c));
  }
  return outcome;
}

class KernelSubject : public Subject {
 public:
  explicit KernelSubject(const KernelAdapter& adapter) : adapter_(adapter) {}

  [[nodiscard]] std::vector<std::string_view> modes() const override { return {adapter_.mode}; }

  /// Cases that wait in real time begin at once and go on beside the others.
  void prepare(const std::vector<const Case*>& cases) override {
    for (const Case* c : cases) {
      if (waits(*c) && !why_not(*c)) {
        waiting_[c] = std::async(std::launch::async, [this, c] { return run_case(*c, adapter_); });
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
    outcome = run_case(c, adapter_);
    if (c.asks_functions) {
      outcome.skipped.emplace_back("'compute' and 'sync' ask functions, not the kernel");
    }
    return outcome;
  }

 private:
  static std::optional<std::string> why_not(const Case& c) {
    if (c.asks_functions && c.steps.empty() && !c.renders) {
      return "'compute' and 'sync' ask functions, not the kernel";
    }
    return std::nullopt;
  }

  const KernelAdapter adapter_;
  std::map<const Case*, std::future<Outcome>> waiting_;
};

}  // namespace

std::unique_ptr<Subject> make_kernel_subject(const KernelAdapter& adapter) {
  return std::make_unique<KernelSubject>(adapter);
}

}  // namespace sluice::conformance
