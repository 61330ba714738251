// Cycles of a packet through a Worker, no I/O, beside the bare probe in the same run. README.md
// says how to read it.

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "bench/beside.h"
#include "bench/core_loop.h"
#include "bench/eal.h"
#include "bench/measure.h"
#include "bench/modes.h"
#include "bench/new_flows.h"
#include "bench/population.h"
#include "bench/probe.h"
#include "bench/section.h"
#include "bench/targets.h"

namespace sluice::bench {
namespace {

constexpr std::uint32_t kManyFlows = 100'000;  ///< more take seconds to set up
constexpr int kTurns = 3;

struct Options {
  std::vector<std::uint32_t> flows = {1'000, 64'000, 1'000'000, 4'000'000};
  std::uint64_t rounds = 8'000;
  bool hugepages = false;
  std::size_t memory_mib = 2'600;
  double clock_ghz = 2.6;  ///< rates are given for this clock, as in the design
  double quantile = 0.5;  ///< which of the measured rounds counts
  bool only_nat4 = false;
  double new_flow_seconds = 0;
  bool modes = false;
  bool no_parts = false;
  std::string section;  ///< one figure alone; see README.md
};

std::string count_name(std::uint32_t n) {
  return n >= 1'000'000 ? std::to_string(n / 1'000'000) + "m" : std::to_string(n / 1'000) + "k";
}

/// All measurements of one run. Thread: main.
class Bench {
 public:
  explicit Bench(const Options& options)
      : options_(options), section_(options.section), cycles_per_tick_(cycles_per_tick()) {}

  int run() { return section_.alone() ? run_section() : run_all(); }

 private:
  int run_all() {
    std::printf("# cycles per packet, both directions, established; %s, %.3f cycles per TSC tick\n",
                options_.hugepages ? "huge pages" : "ordinary pages", cycles_per_tick_);
    std::printf("%-12s %8s %8s %6s | %s | also\n", "flows", "probe", "worker", "ratio",
                options_.no_parts ? "" : " parse   hash lookup  state  write worker");
    for (const std::uint32_t flows : options_.flows) {
      established<core::Ipv4>(flows);
    }
    if (!options_.only_nat4) {
      for (const std::uint32_t flows : options_.flows) {
        established<core::Ipv6>(flows);
      }
    }
    if (!options_.only_nat4 || options_.new_flow_seconds > 0) {
      new_flows();
    }
    if (options_.modes) {
      failed_ = !measure_modes(cycles_per_tick_, options_.rounds, section_, results_) || failed_;
      failed_ = !measure_beside(cycles_per_tick_, options_.rounds, section_, results_) || failed_;
    }
    if (!failed_) {
      print_targets(results_);
    }
    return failed_ ? 1 : 0;
  }

  /// One figure and nothing else, for a profile of it.
  int run_section() {
    for (const std::uint32_t flows : options_.flows) {
      established_section<core::Ipv4>(flows);
      established_section<core::Ipv6>(flows);
    }
    if (section_.has("new_flows")) {
      results_["new_flows"] = new_flow_cycles(cycles_per_tick_, options_.new_flow_seconds, failed_);
    }
    if (section_.has("tcp_connections")) {
      results_["tcp_connections"] =
          whole_connection_cycles(cycles_per_tick_, options_.new_flow_seconds, failed_);
    }
    if (section_.has_some("modes_")) {
      failed_ = !measure_modes(cycles_per_tick_, options_.rounds, section_, results_) || failed_;
    }
    if (section_.has_some("beside_")) {
      failed_ = !measure_beside(cycles_per_tick_, options_.rounds, section_, results_) || failed_;
    }
    const auto found = results_.find(options_.section);
    if (found == results_.end() && !failed_) {
      std::fprintf(stderr, "bench: no section %s\n", options_.section.c_str());
    }
    if (failed_ || found == results_.end()) {
      return 1;
    }
    std::printf("section %s %.2f\n", found->first.c_str(), found->second);
    return 0;
  }

  template <class F>
  void established_section(std::uint32_t flows) {
    const std::string name =
        (F::kFamily == core::Family::kIpv4 ? "4_" : "6_") + count_name(flows);
    const RigConfig plain = {.family = F::kFamily, .connections = flows};
    const auto one = [&](const std::string& kind, auto change) {
      if (section_.has(kind + name)) {
        RigConfig config = plain;
        change(config);
        results_[kind + name] = worker_cycles<F>(config);
      }
    };
    one("nat", [](RigConfig&) {});
    one("fullnat", [](RigConfig& c) { c.fullnat = true; });
    one("handed", [](RigConfig& c) { c.handed_over = true; });
  }

  template <class Fill, class Run>
  double measure(FrameRing& ring, Fill&& fill, Run&& run) const {
    return cycles_per_packet(cycles_per_tick_, options_.quantile, options_.rounds, ring, fill, run);
  }

  void fail(const std::string& what) {
    std::fprintf(stderr, "bench: %s\n", what.c_str());
    failed_ = true;
  }

  /// Figures that are compared are measured in turn, several times where that is cheap, and the
  /// least of each is told: neighbours in the caches come and go by the second.
  template <class F>
  void established(std::uint32_t flows) {
    const std::string family = F::kFamily == core::Family::kIpv4 ? "4" : "6";
    const std::string name = family + "_" + count_name(flows);
    const RigConfig plain = {.family = F::kFamily, .connections = flows};
    RigConfig fullnat = plain;
    fullnat.fullnat = true;
    RigConfig handed = plain;
    handed.handed_over = true;
    for (int turn = 0; turn < (flows > kManyFlows ? 1 : kTurns); ++turn) {
      least("probe" + name, probe_cycles<F>(flows));
      least("nat" + name, worker_cycles<F>(plain));
      if (!options_.only_nat4) {
        least("fullnat" + name, worker_cycles<F>(fullnat));
        least("handed" + name, worker_cycles<F>(handed));
      }
    }
    const double probe = results_["probe" + name];
    const double nat = results_["nat" + name];
    std::printf("IPv%-2s %-6s %8.1f %8.1f %6.2f | %s |", family.c_str(), count_name(flows).c_str(),
                probe, nat, nat / probe,
                options_.no_parts ? "" : parts(core_cycles<F>(flows), nat).c_str());
    if (!options_.only_nat4) {
      std::printf(" fullnat %.1f handed %.1f", results_["fullnat" + name],
                  results_["handed" + name]);
    }
    std::printf("\n");
    std::fflush(stdout);
  }

  void least(const std::string& name, double cycles) {
    const auto [found, is_first] = results_.emplace(name, cycles);
    found->second = is_first ? cycles : std::min(found->second, cycles);
  }

  static std::string parts(const std::array<double, 5>& stages, double nat) {
    char text[64];
    std::snprintf(text, sizeof text, "%6.1f %6.1f %6.1f %6.1f %6.1f %6.1f", stages[0],
                  stages[1] - stages[0], stages[2] - stages[1], stages[3] - stages[2],
                  stages[4] - stages[3], nat - stages[4]);
    return text;
  }

  template <class F>
  double probe_cycles(std::uint32_t flows) {
    auto probe = Probe<F>::create(flows);
    if (!probe) {
      fail(probe.error().message);
      return 0;
    }
    const FlowSpace<F> space{flows, Rig::kBackends};
    for (std::uint32_t f = 0; f < flows; ++f) {
      probe->add(f, space.forward(f), space.reply(f));
    }
    std::uint64_t found = 0;
    const double cycles = measure(
        ring_, [&](FrameRing& ring, std::uint64_t round) { fill(space, ring, round); },
        [&](const pipeline::Packet* p, std::uint32_t n) { found += probe->run(p, n); });
    if (found != options_.rounds * FrameRing::kFrames) {
      fail("the probe did not find every flow");
    }
    return cycles;
  }

  /// Cumulated: parse, + hash, + lookup, + state, + rewrite.
  template <class F>
  std::array<double, 5> core_cycles(std::uint32_t flows) {
    auto loop = CoreLoop<F>::create(flows);
    if (!loop) {
      fail(loop.error().message);
      return {};
    }
    const FlowSpace<F> space{flows, Rig::kBackends};
    for (std::uint32_t f = 0; f < flows; ++f) {
      if (!loop->add(space.forward(f), space.reply(f))) {
        fail("the table is full");
        return {};
      }
    }
    const auto up_to = [&]<UpTo kUpTo>() {
      return measure(
          ring_, [&](FrameRing& ring, std::uint64_t round) { fill(space, ring, round); },
          [&](const pipeline::Packet* p, std::uint32_t n) { loop->template run<kUpTo>(p, n); });
    };
    return {up_to.template operator()<UpTo::kParse>(), up_to.template operator()<UpTo::kHash>(),
            up_to.template operator()<UpTo::kLookup>(), up_to.template operator()<UpTo::kState>(),
            up_to.template operator()<UpTo::kRewrite>()};
  }

  template <class F>
  void fill(const FlowSpace<F>& space, FrameRing& ring, std::uint64_t round) const {
    const Shuffle shuffle(space.flows);
    for (std::size_t i = 0; i < FrameRing::kFrames; ++i) {
      const std::uint64_t k = round * FrameRing::kFrames + i;
      const std::uint32_t flow = shuffle.at(static_cast<std::uint32_t>(k % space.flows));
      const bool reply = ((k / space.flows + k) & 1) != 0;
      ring.put<F>(i, reply ? space.reply(flow) : space.forward(flow), core::kTcpAck);
    }
  }

  template <class F>
  double worker_cycles(const RigConfig& config) {
    auto rig = Rig::create(config);
    if (!rig) {
      fail(rig.error().message);
      return 0;
    }
    Population<F> population(**rig, config.connections);
    if (auto opened = population.open_all(); !opened) {
      fail(opened.error().message);
      return 0;
    }
    const std::uint64_t before = (*rig)->out().sent();
    const ProfileWindow profiled;
    const double cycles = measure(
        ring_, [&](FrameRing& ring, std::uint64_t round) { population.fill(ring, round); },
        [&](const pipeline::Packet* p, std::uint32_t n) { (*rig)->poll(p, n); });
    if ((*rig)->out().sent() - before != options_.rounds * FrameRing::kFrames) {
      fail("not every frame was forwarded:" + (*rig)->counters());
    }
    return cycles;
  }

  void new_flows() {
    const double created = new_flow_cycles(cycles_per_tick_, options_.new_flow_seconds, failed_);
    const double whole =
        whole_connection_cycles(cycles_per_tick_, options_.new_flow_seconds, failed_);
    if (options_.new_flow_seconds > 0) {
      results_["new_flow_seconds"] = options_.new_flow_seconds;
    }
    results_["new_flows_millions"] = options_.clock_ghz * 1000 / created;
    results_["tcp_connections_millions"] = options_.clock_ghz * 1000 / whole;
    std::printf(
        "# 1 m live IPv4 connections: %.0f cycles a new flow and one expired, %.0f cycles a "
        "whole TCP connection of 7 packets\n",
        created, whole);
  }

  Options options_;
  Section section_;
  double cycles_per_tick_;
  FrameRing ring_;
  Results results_;
  bool failed_ = false;
};

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  sluice::bench::Options options;
  CLI::App app{"cycles per packet of the worker, beside the bare probe"};
  app.add_option("--flows", options.flows, "numbers of flows")->delimiter(',');
  app.add_option("--rounds", options.rounds, "rounds of 256 packets for each figure");
  app.add_option("--memory-mib", options.memory_mib, "memory of the EAL");
  app.add_option("--clock-ghz", options.clock_ghz, "clock that rates are given for");
  app.add_option("--quantile", options.quantile, "round that is told; low ones for a busy machine")
      ->check(CLI::Range(0.0, 1.0));
  app.add_flag("--hugepages", options.hugepages, "use huge pages");
  app.add_option("--new-flow-seconds", options.new_flow_seconds,
                 "of the bench's clock that flows come and go; 60 for the target");
  app.add_flag("--modes", options.modes, "every mode, family and share of handed over packets too");
  app.add_option("--section", options.section,
                 "one figure alone: nat4_64k, new_flows, modes_ipip4, beside_changes");
  app.add_flag("--no-parts", options.no_parts, "not what each part of the worker takes");
  app.add_flag("--only-nat4", options.only_nat4, "IPv4 nat alone");
  CLI11_PARSE(app, argc, argv);
  if (!sluice::bench::start_eal(options.hugepages, options.memory_mib)) {
    std::fprintf(stderr, "bench: the EAL did not start with %zu MiB\n", options.memory_mib);
    return 1;
  }
  return sluice::bench::Bench(options).run();
}
