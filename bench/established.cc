#include "bench/established.h"

#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "bench/floors.h"
#include "bench/sides.h"

namespace sluice::bench {
namespace {

std::string count_name(std::uint32_t n) {
  return n >= 1'000'000 ? std::to_string(n / 1'000'000) + "m" : std::to_string(n / 1'000) + "k";
}

/// Of one number of flows. Thread: main.
class Established {
 public:
  Established(const TurnsConfig& turns, std::uint32_t flows, const EstablishedOptions& options,
              const Section& section, Results& results)
      : config_(turns), flows_(flows), options_(options), section_(section), results_(results) {}

  [[nodiscard]] bool run() {
    std::unique_ptr<Timed> probe6;
    std::unique_ptr<Timed> nat6;
    {
      Turns turns(config_, flows_);
      if (!add_probe<core::Ipv4>(turns) || !add_worker<core::Ipv4>(turns, "nat") ||
          !add_rest<core::Ipv4>(turns) || !add_beside_nat4(turns) || !turns.run()) {
        return false;
      }
      turns.tell(results_);
      compare(turns);
      print<core::Ipv4>(turns);
      if (options_.only_nat4) {
        return true;
      }
      if (options_.only_targets) {
        print<core::Ipv6>(turns);
        return true;
      }
      probe6 = turns.take(name<core::Ipv6>("probe"));
      nat6 = turns.take(name<core::Ipv6>("nat"));
    }  // the memory of IPv4's tables is needed now
    Turns turns(config_, flows_);
    turns.add(name<core::Ipv6>("probe"), std::move(probe6));
    turns.add(name<core::Ipv6>("nat"), std::move(nat6));
    if (!add_rest<core::Ipv6>(turns) || !turns.run()) {
      return false;
    }
    turns.tell(results_);
    print<core::Ipv6>(turns);
    return true;
  }

  /// Of the one section, if it is among these.
  [[nodiscard]] bool run_alone() {
    Turns turns(config_, flows_);
    if (!add_worker<core::Ipv4>(turns, "nat") || !add_rest<core::Ipv4>(turns) ||
        !add_worker<core::Ipv6>(turns, "nat") || !add_rest<core::Ipv6>(turns) || !turns.run()) {
      return false;
    }
    turns.tell(results_);
    return true;
  }

 private:
  template <class F>
  [[nodiscard]] std::string name(const std::string& kind) const {
    return kind + (F::kFamily == core::Family::kIpv4 ? "4_" : "6_") + count_name(flows_);
  }

  template <class F>
  bool add_probe(Turns& turns) {
    const FlowSpace<F> space{flows_, Rig::kBackends};
    auto probe = make_probe<F>(space);
    if (!probe) {
      std::fprintf(stderr, "bench: probe: %s\n", probe.error().message.c_str());
      return false;
    }
    if constexpr (F::kFamily == core::Family::kIpv4) {
      probe4_ = *probe;
    }
    turns.add(name<F>("probe"), std::make_unique<ProbeSide<F>>(std::move(*probe), space));
    return true;
  }

  /// What others are compared with IPv4's nat and probe.
  bool add_beside_nat4(Turns& turns) {
    if (options_.only_nat4) {
      return true;
    }
    // Over the probe's table, but not next to it in turn: it would find it in the caches.
    const FlowSpace<core::Ipv4> space{flows_, Rig::kBackends};
    return turns.add_made(name<core::Ipv4>("bare_handed"),
                          HandedProbeSide<core::Ipv4>::make(std::move(probe4_), space)) &&
           add_worker<core::Ipv6>(turns, "nat") && add_probe<core::Ipv6>(turns);
  }

  template <class F>
  bool add_worker(Turns& turns, const std::string& kind) {
    const bool left_out =
        options_.only_nat4 && (kind != "nat" || F::kFamily != core::Family::kIpv4);
    if (left_out || !section_.has(name<F>(kind))) {
      return true;
    }
    RigConfig config;
    config.family = F::kFamily;
    config.connections = flows_;
    config.fullnat = kind == "fullnat";
    config.handed_over = kind == "handed";
    return turns.add_made(name<F>(kind), WorkerSide<F>::make(config));
  }

  /// What is beside probe and nat.
  template <class F>
  bool add_rest(Turns& turns) {
    return add_worker<F>(turns, "fullnat") && add_worker<F>(turns, "handed") &&
           (section_.alone() || add_parts<F>(turns));
  }

  /// All of them in one is a floor of IPv4's nat.
  template <class F>
  bool add_parts(Turns& turns) {
    if (options_.no_parts && F::kFamily != core::Family::kIpv4) {
      return true;
    }
    auto loop = make_core_loop<F>(flows_);
    if (!loop) {
      std::fprintf(stderr, "bench: parts: %s\n", loop.error().message.c_str());
      return false;
    }
    turns.add(name<F>("write"), std::make_unique<CoreSide<F, UpTo::kRewrite>>(*loop, flows_));
    if (options_.no_parts) {
      return true;
    }
    turns.add(name<F>("parse"), std::make_unique<CoreSide<F, UpTo::kParse>>(*loop, flows_));
    turns.add(name<F>("hash"), std::make_unique<CoreSide<F, UpTo::kHash>>(*loop, flows_));
    turns.add(name<F>("lookup"), std::make_unique<CoreSide<F, UpTo::kLookup>>(*loop, flows_));
    turns.add(name<F>("state"), std::make_unique<CoreSide<F, UpTo::kState>>(*loop, flows_));
    return true;
  }

  void compare(const Turns& turns) {
    const std::string nat = name<core::Ipv4>("nat");
    const auto over_nat = [&](const std::string& other) {
      results_[other + "/" + nat] = turns.ratio(other, nat);
    };
    results_[nat + "/" + name<core::Ipv4>("probe")] =
        turns.ratio(nat, name<core::Ipv4>("probe"));
    if (!options_.only_nat4) {
      const std::string probe = name<core::Ipv4>("probe");
      const std::string handed = name<core::Ipv4>("handed");
      const std::string bare = name<core::Ipv4>("bare_handed");
      const std::string probe6 = name<core::Ipv6>("probe");
      over_nat(name<core::Ipv6>("nat"));
      over_nat(name<core::Ipv4>("fullnat"));
      results_[handed + "-" + nat] = turns.difference(handed, nat);
      results_[probe6 + "/" + probe] = turns.ratio(probe6, probe);
      results_[bare + "-" + probe] = turns.difference(bare, probe);
    }
  }

  /// A row of low quantiles and one of medians, of what was measured.
  template <class F>
  void print(const Turns& turns) {
    for (const bool low : {true, false}) {
      const auto cycles = [&](const char* kind) { return of(turns.cycles(name<F>(kind)), low); };
      const auto shown = [&](const char* kind) {
        return turns.has(name<F>(kind)) ? number(cycles(kind)) : std::string("-");
      };
      const bool beside = turns.has(name<F>("probe"));
      const std::string ratio =
          beside ? number(of(turns.ratio(name<F>("nat"), name<F>("probe")), low), 2) : "-";
      std::printf("IPv%-2s %-6s %-6s %8s %8s %6s |",
                  F::kFamily == core::Family::kIpv4 ? "4" : "6", count_name(flows_).c_str(),
                  low ? "low" : "median", shown("probe").c_str(), shown("nat").c_str(),
                  ratio.c_str());
      if (turns.has(name<F>("parse"))) {
        double before = 0;
        for (const char* part : {"parse", "hash", "lookup", "state", "write", "nat"}) {
          std::printf(" %6.1f", cycles(part) - before);
          before = cycles(part);
        }
      }
      std::printf(" | fullnat %s handed %s\n", shown("fullnat").c_str(),
                  shown("handed").c_str());
    }
    std::fflush(stdout);
  }

  static double of(const Figure& figure, bool low) { return low ? figure.told : *figure.median; }
  static std::string number(double value, int digits = 1) {
    char text[32];
    std::snprintf(text, sizeof text, "%.*f", digits, value);
    return text;
  }

  TurnsConfig config_;
  std::uint32_t flows_;
  const EstablishedOptions& options_;
  const Section& section_;
  Results& results_;
  std::shared_ptr<Probe<core::Ipv4>> probe4_;  ///< until its hand-over takes it
};

}  // namespace

void print_established_head(const EstablishedOptions& options) {
  std::printf("%-19s %8s %8s %6s | %s | also\n", "flows", "probe", "worker", "ratio",
              options.no_parts ? "" : " parse   hash lookup  state  write worker");
}

bool measure_established(const TurnsConfig& turns, std::uint32_t flows,
                         const EstablishedOptions& options, const Section& section,
                         Results& results) {
  Established established(turns, flows, options, section, results);
  return section.alone() ? established.run_alone() : established.run();
}

}  // namespace sluice::bench
