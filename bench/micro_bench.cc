// Cycles per pick of every scheduler at 10 and 1,000 backends (bench/README.md). A pick happens for
// a new flow only. What is timed is core::pick() with its dispatch; clients and destinations differ
// from pick to pick, and what was picked counts as one connection more.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "bench/clock.h"
#include "dataplane/core/fwd/text.h"
#include "dataplane/core/sched/pick.h"

namespace {

using namespace sluice;  // NOLINT(google-build-using-namespace): a main file

constexpr std::size_t kFlows = 256;
constexpr int kRounds = 400;

core::ServicePort service(core::SchedulerKind kind, std::uint32_t backends) {
  core::ServicePort s;
  s.name = "bench/web";
  s.scheduler = kind;
  for (std::uint32_t n = 0; n < backends; ++n) {
    core::Endpoint e;
    e.address = core::IpAddress(core::Be32::from_host(0x0af40000 + n));
    e.port = 8080;
    e.id = core::EndpointId{n};
    e.weight = static_cast<std::uint16_t>(n % 4 + 1);
    s.endpoints.push_back(e);
    s.cluster.push_back(core::EndpointIndex{n});
  }
  core::plan_picks(s, nullptr);
  return s;
}

std::vector<core::FlowTuple> flows() {
  std::mt19937 random(1);
  std::vector<core::FlowTuple> all(kFlows);
  for (core::FlowTuple& t : all) {
    t.src = core::IpAddress(core::Be32::from_host(static_cast<std::uint32_t>(random())));
    const auto vip = static_cast<std::uint32_t>(0xcb007100 + random() % 8);
    t.dst = core::IpAddress(core::Be32::from_host(vip));
    t.sport = static_cast<std::uint16_t>(random());
    t.dport = 80;
  }
  return all;
}

/// Median round. @return cycles per pick.
double measure(core::SchedulerKind kind, std::uint32_t backends, double cycles_per_tick) {
  const core::ServicePort s = service(kind, backends);
  const std::vector<core::FlowTuple> tuples = flows();
  const auto cells = std::make_unique<core::LoadCell[]>(backends);
  std::mt19937 random(2);
  for (std::uint32_t n = 0; n < backends; ++n) {
    cells[n].own_active = static_cast<std::uint32_t>(200 + random() % 100);
    cells[n].others_active = static_cast<std::int32_t>(random() % 100);
  }
  core::SchedulerState state(1024, 1, 4, 1, core::LoadView({cells.get(), backends}, 4));
  core::Decision d;
  d.verdict = core::FlowVerdict::kForward;
  d.service = &s;
  d.slot = core::ServiceSlot{3};
  d.eligible = s.cluster;
  d.plan = s.cluster_plan.plan.get();
  std::vector<std::uint64_t> ticks;
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t start = bench::tsc();
    for (const core::FlowTuple& tuple : tuples) {
      const auto chosen = static_cast<std::uint32_t>(core::pick(d, tuple, 0, state));
      auto& own = cells[chosen].own_active;
      own.store(own.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
    ticks.push_back(bench::tsc() - start);
  }
  std::nth_element(ticks.begin(), ticks.begin() + kRounds / 2, ticks.end());
  return static_cast<double>(ticks[kRounds / 2]) / kFlows * cycles_per_tick;
}

}  // namespace

int main() {
  const double cycles_per_tick = bench::cycles_per_tick();
  std::printf("%-10s %14s %14s   cycles per pick\n", "scheduler", "10 backends", "1000 backends");
  for (const core::SchedulerKind kind : core::kAllSchedulers) {
    std::printf("%-10s %14.0f %14.0f\n", std::string(core::name_of(kind)).c_str(),
                measure(kind, 10, cycles_per_tick), measure(kind, 1000, cycles_per_tick));
  }
  return 0;
}
