#include "bench/modes.h"

#include <cstdio>
#include <string>

#include "bench/measure.h"
#include "bench/population.h"

namespace sluice::bench {
namespace {

constexpr std::uint32_t kFlows = 64'000;

/// Rows that share a clock and a place for what they find.
class Modes {
 public:
  Modes(double cycles_per_tick, std::uint64_t rounds, const Section& section, Results& results)
      : cycles_per_tick_(cycles_per_tick), rounds_(rounds), section_(section), results_(results) {}

  [[nodiscard]] bool good() const noexcept { return good_; }

  /// Both directions.
  template <class F>
  void established(const std::string& name, const RigConfig& config) {
    both_ways<F>(name, config, [](Rig& rig, const pipeline::Packet* p, std::uint32_t n) {
      rig.poll(p, n);
    });
  }

  /// `handed` packets of each burst arrive at the wrong worker; cycles of both workers together.
  template <class F>
  void split(const std::string& name, std::uint32_t handed) {
    RigConfig config;
    config.family = F::kFamily;
    config.connections = kFlows;
    config.handed_over = true;
    both_ways<F>(name, config, [handed](Rig& rig, const pipeline::Packet* p, std::uint32_t n) {
      rig.poll_split(p, n, handed);
    });
  }

  /// Only clients send: dr and ipip.
  template <class F>
  void one_way(const std::string& name, const RigConfig& config) {
    auto rig = make(name, config);
    if (rig == nullptr) {
      return;
    }
    const FlowSpace<F> space{kFlows, Rig::kBackends, static_cast<std::uint8_t>(config.protocol)};
    const Shuffle order(kFlows);
    const auto fill = [&](FrameRing& ring, std::uint64_t round, std::uint8_t flags) {
      for (std::size_t i = 0; i < FrameRing::kFrames; ++i) {
        const auto k = static_cast<std::uint32_t>((round * FrameRing::kFrames + i) % kFlows);
        ring.put<F>(i, space.forward(order.at(k)), flags);
      }
    };
    for (const std::uint8_t flags : {core::kTcpSyn, core::kTcpAck}) {
      for (std::uint64_t round = 0; round <= kFlows / FrameRing::kFrames; ++round) {
        fill(ring_, round, flags);
        for (std::size_t b = 0; b < FrameRing::kBursts; ++b) {
          rig->poll(&ring_.packet(b * pipeline::kBurst), pipeline::kBurst);
        }
      }
    }
    timed(name, *rig,
          [&](FrameRing& ring, std::uint64_t round) { fill(ring, round, core::kTcpAck); },
          [&](const pipeline::Packet* p, std::uint32_t n) { rig->poll(p, n); });
  }

 private:
  template <class F, class Poll>
  void both_ways(const std::string& name, const RigConfig& config, Poll&& poll) {
    auto rig = make(name, config);
    if (rig == nullptr) {
      return;
    }
    Population<F> population(*rig, kFlows, config.protocol);
    if (auto opened = population.open_all(); !opened) {
      fail(name, opened.error().message);
      return;
    }
    timed(
        name, *rig, [&](FrameRing& ring, std::uint64_t round) { population.fill(ring, round); },
        [&](const pipeline::Packet* p, std::uint32_t n) { poll(*rig, p, n); });
  }

  /// @return null when the row is not asked for, too.
  std::unique_ptr<Rig> make(const std::string& name, const RigConfig& config) {
    if (!section_.has("modes_" + name)) {
      return nullptr;
    }
    auto rig = Rig::create(config);
    if (!rig) {
      fail(name, rig.error().message);
      return nullptr;
    }
    return std::move(*rig);
  }

  template <class Fill, class Run>
  void timed(const std::string& name, Rig& rig, Fill&& fill, Run&& run) {
    const std::uint64_t before = rig.out().sent();
    const ProfileWindow profiled;
    const double cycles = cycles_per_packet(cycles_per_tick_, 0.5, rounds_, ring_, fill, run);
    if (rig.out().sent() - before != rounds_ * FrameRing::kFrames) {
      fail(name, "not every frame was forwarded:" + rig.counters());
      return;
    }
    results_["modes_" + name] = cycles;
    std::printf("%-14s %8.1f cycles per packet\n", name.c_str(), cycles);
    std::fflush(stdout);
  }

  void fail(const std::string& name, const std::string& what) {
    std::fprintf(stderr, "bench: %s: %s\n", name.c_str(), what.c_str());
    good_ = false;
  }

  double cycles_per_tick_;
  std::uint64_t rounds_;
  const Section& section_;
  Results& results_;
  FrameRing ring_;
  bool good_ = true;
};

template <class F>
void family(Modes& modes, const std::string& number) {
  const RigConfig base = {.family = F::kFamily, .connections = kFlows};
  const auto with = [&](auto change) {
    RigConfig config = base;
    change(config);
    return config;
  };
  const auto udp = [](RigConfig& c) { c.protocol = core::Protocol::kUdp; };
  modes.established<F>("nat" + number, base);
  modes.established<F>("nat_udp" + number, with(udp));
  modes.established<F>("fullnat" + number, with([](RigConfig& c) { c.fullnat = true; }));
  modes.one_way<F>("nat_clients" + number, base);  // beside the next two, which see no answers
  modes.one_way<F>("dr" + number, with([](RigConfig& c) { c.dr = true; }));
  modes.one_way<F>("ipip" + number, with([](RigConfig& c) { c.ipip = true; }));
  for (const std::uint32_t share : {0u, 25u, 50u, 100u}) {
    modes.split<F>("handed" + std::to_string(share) + "%_" + number,
                   static_cast<std::uint32_t>(pipeline::kBurst * share / 100));
  }
}

}  // namespace

bool measure_modes(double cycles_per_tick, std::uint64_t rounds, const Section& section,
                   Results& results) {
  std::printf("# modes at %u flows; dr and ipip: clients only\n", kFlows);
  Modes modes(cycles_per_tick, rounds, section, results);
  family<core::Ipv4>(modes, "4");
  family<core::Ipv6>(modes, "6");
  return modes.good();
}

}  // namespace sluice::bench
