#include "bench/targets.h"

#include <cstdio>

namespace sluice::bench {
namespace {

struct Target {
  std::string name;
  double measured;
  double wanted;
  double goal;
  bool more_is_better;
};

void print(const Target& t) {
  const bool pass = t.more_is_better ? t.measured >= t.wanted : t.measured <= t.wanted;
  std::printf("target %-26s measured %8.2f wanted %8.2f goal %8.2f %s\n", t.name.c_str(),
              t.measured, t.wanted, t.goal, pass ? "pass" : "short");
}

/// All of `needed` were measured.
template <class... Name>
bool have(const Results& results, const Name&... needed) {
  return (results.contains(needed) && ...);
}

}  // namespace

void print_targets(const Results& r) {
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
  if (have(r, "modes_nat4", "modes_ipip4")) {
    print({"ipip4-nat4", r.at("modes_ipip4") - r.at("modes_nat4"), 20, 20, false});
  }
  if (have(r, "modes_nat4", "modes_changing4")) {
    print({"changes_every_10ms_goodput", r.at("modes_nat4") / r.at("modes_changing4"), 0.98, 1.0,
           true});
  }
  if (have(r, "endpoint_change_p99_ms", "full_snapshot_ms")) {
    print({"endpoint_change_p99_ms", r.at("endpoint_change_p99_ms"), 1, 1, false});
    print({"full_snapshot_ms", r.at("full_snapshot_ms"), 250, 250, false});
  }
  if (have(r, "nftables_full_cpu_ms", "nftables_change_cpu_ms")) {
    print({"nftables_full_cpu_ms", r.at("nftables_full_cpu_ms"), 300, 300, false});
    print({"nftables_change_cpu_ms", r.at("nftables_change_cpu_ms"), 3, 3, false});
  }
  if (have(r, "new_flows_millions")) {
    print({"new_flows_millions", r.at("new_flows_millions"), 1.5, 3.0, true});
  }
  if (have(r, "tcp_connections_millions")) {
    print({"tcp_connections_millions", r.at("tcp_connections_millions"), 0.5, 0.5, true});
  }
}

}  // namespace sluice::bench
