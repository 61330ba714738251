#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/core/sched/pick.h"

namespace sluice::core {

/// One service port whose candidates are picked from, and connection counts that can be set.
class Bench {
 public:
  explicit Bench(SchedulerKind kind, std::vector<std::uint16_t> weights = {},
                 std::uint32_t workers = 1)
      : cells_(std::make_unique<LoadCell[]>(kCells)) {
    service_.scheduler = kind;
    offer(std::move(weights));
    for (std::uint32_t w = 0; w < workers; ++w) {
      states_.emplace_back(8, w, workers, 1, LoadView({cells_.get(), kCells}, 1));
    }
  }

  /// Endpoints 10.0.0.1:8080, 10.0.0.2:8080, ... with ids 0, 1, ...; weight 0 is no candidate.
  void offer(std::vector<std::uint16_t> weights) {
    service_.endpoints.clear();
    for (std::size_t i = 0; i < weights.size(); ++i) {
      Endpoint e;
      const auto host = std::to_string(i / 250) + "." + std::to_string(i % 250 + 1);
      e.address = *parse_address("10.0." + host);
      e.port = 8080;
      e.weight = weights[i];
      e.id = EndpointId{static_cast<std::uint32_t>(i)};
      service_.endpoints.push_back(e);
    }
    renew();
  }
  /// After a change of service().
  void renew() {
    service_.cluster.clear();
    for (std::uint32_t i = 0; i < service_.endpoints.size(); ++i) {
      if (service_.endpoints[i].weight != 0 && service_.endpoints[i].ready) {
        service_.cluster.push_back(EndpointIndex{i});
      }
    }
    service_.cluster_plan = {};
    plan_picks(service_, nullptr);
  }
  ServicePort& service() { return service_; }
  const PickPlan& plan() const { return *service_.cluster_plan.plan; }

  Decision decision() const {
    Decision d;
    d.verdict = FlowVerdict::kForward;
    d.reason = DecisionReason::kClusterPolicy;
    d.service = &service_;
    d.slot = ServiceSlot{3};
    d.eligible = service_.cluster;
    d.plan = service_.cluster_plan.plan.get();
    d.affinity_seconds = service_.affinity_seconds;
    return d;
  }

  static FlowTuple flow(const std::string& client, std::uint16_t port,
                        const std::string& vip = "192.0.2.100") {
    FlowTuple t;
    t.src = *parse_address(client);
    t.dst = *parse_address(vip);
    t.sport = port;
    t.dport = 80;
    return t;
  }

  /// Index of the endpoint; -1: none.
  int pick(const FlowTuple& tuple, std::uint32_t worker = 0) {
    const EndpointIndex i = core::pick(decision(), tuple, now_s * 1'000'000'000, states_[worker]);
    return i == EndpointIndex::kNone ? -1 : static_cast<int>(i);
  }
  int pick(std::uint32_t worker = 0) { return pick(flow("198.51.100.1", 1000), worker); }
  std::vector<int> picks(std::size_t n, std::uint32_t worker = 0) {
    std::vector<int> out;
    for (std::size_t i = 0; i < n; ++i) {
      out.push_back(pick(worker));
    }
    return out;
  }

  void set_load(std::uint32_t id, std::uint32_t active, std::uint32_t closing = 0) {
    cells_[id].own_active = active;
    cells_[id].own_closing = closing;
  }
  std::uint32_t active(std::uint32_t id) const { return cells_[id].own_active; }

  std::uint64_t now_s = 1000;

 private:
  static constexpr std::size_t kCells = 2048;
  ServicePort service_;
  std::unique_ptr<LoadCell[]> cells_;
  std::vector<SchedulerState> states_;
};

}  // namespace sluice::core
