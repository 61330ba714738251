#include "bench/targets.h"

#include <cmath>
#include <cstdio>
#include <string>
#include <utility>

namespace sluice::bench {
namespace {

struct Target {
  std::string name;
  double measured;
  double wanted;
  double goal;
  bool more_is_better;
  std::string remark{};
};

void print(const Target& t) {
  const bool pass = t.more_is_better ? t.measured >= t.wanted : t.measured <= t.wanted;
  std::printf("target %-26s measured %8.2f wanted %8.2f goal %8.2f %s%s%s\n", t.name.c_str(),
              t.measured, t.wanted, t.goal, pass ? "pass" : "short", t.remark.empty() ? "" : "  # ",
              t.remark.c_str());
}

/// All of `needed` were measured.
template <class... Name>
bool have(const Results& results, const Name&... needed) {
  return (results.contains(needed) && ...);
}

/// Established flows, one worker, no I/O.
void print_cycles(const Results& r) {
  struct Cycles {
    const char* flows;
    double wanted;
    double goal;
    double probe;  ///< of the machine the target was set on
  };
  for (const Cycles& c : {Cycles{"64k", 80, 60, 58}, Cycles{"4m", 170, 150, 196}}) {
    const std::string nat4 = std::string("nat4_") + c.flows;
    const std::string nat6 = std::string("nat6_") + c.flows;
    const std::string fullnat4 = std::string("fullnat4_") + c.flows;
    const std::string handed4 = std::string("handed4_") + c.flows;
    if (!have(r, nat4)) {
      continue;
    }
    const double base = r.at(nat4);
    print({nat4, base, c.wanted, c.goal, false});
    const std::string probe4 = std::string("probe4_") + c.flows;
    if (have(r, probe4)) {
      // The same target for this machine and its load: what counts is the distance to the probe.
      print(
          {nat4 + "/" + probe4, base / r.at(probe4), c.wanted / c.probe, c.goal / c.probe, false});
    }
    if (have(r, nat6)) {
      print({nat6 + "/" + nat4, r.at(nat6) / base, 1.25, 1.25, false});
    }
    if (have(r, fullnat4)) {
      // "Equal" with room for the noise of two runs.
      print({fullnat4 + "/" + nat4, r.at(fullnat4) / base, 1.05, 1.0, false});
    }
    if (have(r, handed4)) {
      print({handed4 + "-" + nat4, r.at(handed4) - base, 60, 60, false});
    }
  }
}

/// The modes of the pipeline bench, at 64 k flows.
void print_modes(const Results& r) {
  if (have(r, "modes_nat_clients4", "modes_ipip4")) {
    print({"ipip4-nat4", r.at("modes_ipip4") - r.at("modes_nat_clients4"), 20, 20, false,
           "no I/O, packets of clients"});
  }
  if (have(r, "beside_workers_2", "beside_changes")) {
    print({"workers_2/1", r.at("beside_workers_2"), 1.9, 2, true,
           "no I/O, stepped in turn on one core"});
    print({"changes_every_10ms_goodput", r.at("beside_changes"), 0.98, 1.0, true});
  }
}

/// What changes of the cluster cost.
void print_changes(const Results& r) {
  if (have(r, "endpoint_change_p99_ms", "full_snapshot_ms")) {
    print({"endpoint_change_p99_ms", r.at("endpoint_change_p99_ms"), 1, 1, false});
    print({"full_snapshot_ms", r.at("full_snapshot_ms"), 250, 250, false});
  }
  if (have(r, "nftables_full_cpu_ms", "nftables_change_cpu_ms")) {
    print({"nftables_full_cpu_ms", r.at("nftables_full_cpu_ms"), 300, 300, false});
    print({"nftables_change_cpu_ms", r.at("nftables_change_cpu_ms"), 3, 3, false});
  }
}

/// New flows, and what tables take.
void print_flows(const Results& r) {
  const std::string during =
      have(r, "new_flow_seconds")
          ? "no I/O, for " + std::to_string(std::lround(r.at("new_flow_seconds"))) + " s"
          : "no I/O, a moment";
  if (have(r, "new_flows_millions")) {
    print({"new_flows_millions", r.at("new_flows_millions"), 1.5, 3.0, true, during});
  }
  if (have(r, "tcp_connections_millions")) {
    print({"tcp_connections_millions", r.at("tcp_connections_millions"), 0.5, 0.5, true, during});
  }
  for (const auto& [name, wanted] :
       {std::pair{"memory_bytes_ipv4", 192.0}, std::pair{"memory_bytes_ipv6", 320.0}}) {
    if (have(r, name)) {
      print({name, r.at(name), wanted, wanted, false, "of the table per connection"});
    }
  }
  if (have(r, "start_16m")) {
    print({"start_16m_seconds", r.at("start_16m"), 2, 2, false, "EAL and the IPv4 table"});
  }
}

}  // namespace

void print_targets(const Results& r) {
  print_cycles(r);
  print_modes(r);
  print_changes(r);
  print_flows(r);
}

}  // namespace sluice::bench
