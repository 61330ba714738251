// Cycles of a packet through a Worker, no I/O, beside the bare probe in the same run. methods.md
// says how to read it.

#include <cstdio>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "bench/beside.h"
#include "bench/clock.h"
#include "bench/eal.h"
#include "bench/established.h"
#include "bench/floors.h"
#include "bench/modes.h"
#include "bench/new_flows.h"
#include "bench/section.h"
#include "bench/targets.h"
#include "dataplane/core/fwd/text.h"

namespace sluice::bench {
namespace {

struct Options {
  std::vector<std::uint32_t> flows = {1'000, 64'000, 1'000'000, 4'000'000};
  TurnsConfig turns;
  bool hugepages = false;
  std::size_t memory_mib = 7'200;
  double clock_ghz = 2.6;  ///< rates are given for this clock, as in the design
  EstablishedOptions established;
  double new_flow_seconds = 0;
  bool modes = false;
  std::string section;  ///< one figure alone; see methods.md
};

/// All measurements of one run. Thread: main.
class Bench {
 public:
  explicit Bench(const Options& options) : options_(options), section_(options.section) {
    options_.turns.cycles_per_tick = cycles_per_tick();
  }

  int run() { return section_.alone() ? run_section() : run_all(); }

 private:
  int run_all() {
    std::printf("# cycles per packet, both directions, established; %s, %.3f cycles per TSC tick; "
                "low: %s\n",
                options_.hugepages ? "huge pages" : "ordinary pages",
                options_.turns.cycles_per_tick, quantile_name(options_.turns.quantile).c_str());
    print_established_head(options_.established);
    established();
    if (!options_.established.only_nat4 || options_.new_flow_seconds > 0) {
      new_flows();
    }
    if (options_.modes) {
      beside_each_other();
      if (!options_.established.only_targets) {
        new_flows_by_scheduler();
      }
    }
    if (!failed_) {
      print_targets(results_);
    }
    return failed_ ? 1 : 0;
  }

  /// One figure and nothing else, for a profile of it.
  int run_section() {
    established();
    if (section_.has("new_flows")) {
      results_["new_flows"] = new_flow_cycles(options_.turns, options_.new_flow_seconds, failed_);
    }
    if (section_.has("tcp_connections")) {
      results_["tcp_connections"] =
          whole_connection_cycles(options_.turns, options_.new_flow_seconds, failed_);
    }
    beside_each_other();
    const auto found = results_.find(options_.section);
    if (found == results_.end() && !failed_) {
      std::fprintf(stderr, "bench: no section %s\n", options_.section.c_str());
    }
    if (failed_ || found == results_.end()) {
      return 1;
    }
    // The profile is of all rounds.
    const Figure& figure = found->second;
    std::printf("section %s %.2f\n", found->first.c_str(), figure.median.value_or(figure.told));
    return 0;
  }

  void established() {
    for (const std::uint32_t flows : options_.flows) {
      failed_ = !measure_established(options_.turns, flows, options_.established, section_,
                                     results_) || failed_;
    }
  }

  void beside_each_other() {
    if (!section_.alone() || section_.has_some("modes_")) {
      failed_ = !measure_modes(options_.turns, section_, results_) || failed_;
    }
    if (!section_.alone() || section_.has_some("beside_")) {
      failed_ = !measure_beside(options_.turns, section_, results_) || failed_;
    }
  }

  void new_flows() {
    const double seconds = options_.new_flow_seconds;
    const Figure created = new_flow_cycles(options_.turns, seconds, failed_);
    const Figure whole = whole_connection_cycles(options_.turns, seconds, failed_);
    if (seconds > 0) {
      results_["new_flow_seconds"] = seconds;
    }
    results_["new_flows_millions"] = rate_of(created);
    results_["tcp_connections_millions"] = rate_of(whole);
    results_["bare_new_flows_millions"] = rate_of(bare_new_flow_cycles(options_.turns, failed_));
    std::printf("# 1 m live IPv4 connections: %.0f cycles (median %.0f) a new flow and one "
                "expired, %.0f (median %.0f) a whole TCP connection of 7 packets\n",
                created.told, created.median.value_or(0), whole.told, whole.median.value_or(0));
  }

  void new_flows_by_scheduler() {
    std::printf("# the same new flows by scheduler, %u endpoints\n", Rig::kBackends);
    for (const core::SchedulerKind scheduler : core::kAllSchedulers) {
      const Figure created = new_flow_cycles(options_.turns, 0, failed_, scheduler);
      std::printf("new_%-8s %8.0f cycles a flow, median %.0f\n",
                  std::string(core::name_of(scheduler)).c_str(), created.told,
                  created.median.value_or(0));
    }
  }

  /// Millions a second, of cycles each.
  [[nodiscard]] Figure rate_of(const Figure& cycles) const {
    const double millions = options_.clock_ghz * 1000;
    return {millions / cycles.told, millions / cycles.median.value_or(cycles.told), cycles.how};
  }

  Options options_;
  Section section_;
  Results results_;
  bool failed_ = false;
};

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  sluice::bench::Options options;
  CLI::App app{"cycles per packet of the worker, beside the bare probe"};
  app.add_option("--flows", options.flows, "numbers of flows")->delimiter(',');
  app.add_option("--rounds", options.turns.rounds, "rounds of 256 packets for each figure");
  app.add_option("--memory-mib", options.memory_mib, "memory of the EAL");
  app.add_option("--clock-ghz", options.clock_ghz, "clock that rates are given for");
  app.add_option("--quantile", options.turns.quantile,
                 "of the rounds, which targets are compared with; 0.5: the median")
      ->check(CLI::Range(0.0, 1.0));
  app.add_flag("--hugepages", options.hugepages, "use huge pages");
  app.add_option("--new-flow-seconds", options.new_flow_seconds,
                 "of the bench's clock that flows come and go; 60 for the target");
  app.add_flag("--modes", options.modes, "every mode, family, scheduler and share of handed over packets too");
  app.add_option("--section", options.section,
                 "one figure alone: nat4_64k, new_flows, modes_ipip4, beside_changes");
  app.add_flag("--no-parts", options.established.no_parts,
               "not what each part of the worker takes");
  app.add_flag("--only-targets", options.established.only_targets,
               "not what else of IPv6 stands beside its nat, nor new flows by scheduler");
  app.add_flag("--only-nat4", options.established.only_nat4, "IPv4 nat alone");
  CLI11_PARSE(app, argc, argv);
  if (!sluice::bench::start_eal(options.hugepages, options.memory_mib)) {
    std::fprintf(stderr, "bench: the EAL did not start with %zu MiB\n", options.memory_mib);
    return 1;
  }
  return sluice::bench::Bench(options).run();
}
