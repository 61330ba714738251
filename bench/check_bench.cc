// The hot path with fixed input, to be counted by callgrind: bench/check runs this. Prints one line
// "NAME PACKETS" for each scenario; between two of them the counts are dumped under that name.

#include <cstdio>
#include <memory>
#include <string>

#include <valgrind/callgrind.h>

#include "bench/core_loop.h"
#include "bench/eal.h"
#include "bench/population.h"
#include "bench/rig.h"

namespace sluice::bench {
namespace {

constexpr std::uint32_t kFlows = 2'000;
constexpr std::uint64_t kRounds = 32;
constexpr std::uint64_t kWarmUp = 2 * kFlows / FrameRing::kFrames + 1;

bool failed = false;

void fail(const std::string& what) {
  std::fprintf(stderr, "check: %s\n", what.c_str());
  failed = true;
}

/// nullptr when it could not be made, which is told.
std::unique_ptr<Rig> make_rig(const RigConfig& config) {
  auto rig = Rig::create(config);
  if (!rig) {
    fail(rig.error().message);
    return nullptr;
  }
  return std::move(*rig);
}

/// Counts `run(packets, n)` alone.
template <class Fill, class Run>
void scenario(const char* name, FrameRing& ring, Fill&& fill, Run&& run) {
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    fill(ring, round);
    // The first round is warm-up.
    if (round != 0) {
      CALLGRIND_TOGGLE_COLLECT;
    }
    for (std::size_t b = 0; b < FrameRing::kBursts; ++b) {
      run(&ring.packet(b * pipeline::kBurst), static_cast<std::uint32_t>(pipeline::kBurst));
    }
    if (round != 0) {
      CALLGRIND_TOGGLE_COLLECT;
    }
  }
  CALLGRIND_DUMP_STATS_AT(name);
  std::printf("%s %llu\n", name,
              static_cast<unsigned long long>((kRounds - 1) * FrameRing::kFrames));
}

template <class F>
void core_scenarios(const std::string& suffix) {
  auto loop = CoreLoop<F>::create(kFlows);
  if (!loop) {
    fail(loop.error().message);
    return;
  }
  const FlowSpace<F> space{kFlows, Rig::kBackends};
  for (std::uint32_t f = 0; f < kFlows; ++f) {
    loop->add(space.forward(f), space.reply(f));
  }
  const auto fill = [&](FrameRing& ring, std::uint64_t round) {
    for (std::size_t i = 0; i < FrameRing::kFrames; ++i) {
      const auto k = static_cast<std::uint32_t>(round * FrameRing::kFrames + i);
      const std::uint32_t flow = k * 7 % kFlows;
      ring.put<F>(i, k % 2 == 0 ? space.forward(flow) : space.reply(flow), core::kTcpAck);
    }
  };
  FrameRing ring;
  scenario(("parse" + suffix).c_str(), ring, fill, [&](const pipeline::Packet* p, std::uint32_t n) {
    loop->template run<UpTo::kParse>(p, n);
  });
  scenario(
      ("lookup" + suffix).c_str(), ring, fill,
      [&](const pipeline::Packet* p, std::uint32_t n) { loop->template run<UpTo::kLookup>(p, n); });
}

/// A scenario in which every frame is forwarded.
template <class Fill>
void forwarded(const char* name, Rig& rig, Fill&& fill) {
  const std::uint64_t before = rig.out().sent();
  FrameRing ring;
  scenario(name, ring, fill,
           [&](const pipeline::Packet* p, std::uint32_t n) { rig.poll(p, n); });
  if (rig.out().sent() - before != kRounds * FrameRing::kFrames) {
    fail(std::string(name) + ": not every frame was forwarded:" + rig.counters());
  }
}

template <class F>
void established(const char* name, const RigConfig& config) {
  const auto rig = make_rig(config);
  if (rig == nullptr) {
    return;
  }
  Population<F> population(*rig, kFlows, config.protocol);
  if (auto opened = population.open_all(); !opened) {
    fail(opened.error().message);
    return;
  }
  const auto fill = [&](FrameRing& ring, std::uint64_t round) { population.fill(ring, round); };
  FrameRing ring;
  // Every packet of both directions once, and what a worker remembers of them has come.
  for (std::uint64_t round = 0; config.handed_over && round < kWarmUp; ++round) {
    fill(ring, round);
    for (std::size_t b = 0; b < FrameRing::kBursts; ++b) {
      rig->poll(&ring.packet(b * pipeline::kBurst), pipeline::kBurst);
    }
  }
  forwarded(name, *rig, fill);
}

/// Established flows whose answers do not come by.
template <class F>
void one_way(const char* name, const RigConfig& config) {
  const auto rig = make_rig(config);
  if (rig == nullptr) {
    return;
  }
  const FlowSpace<F> space{kFlows, Rig::kBackends};
  const auto fill = [&](FrameRing& r, std::uint32_t first, std::uint8_t flags) {
    for (std::size_t i = 0; i < FrameRing::kFrames; ++i) {
      const auto k = first + static_cast<std::uint32_t>(i);
      r.put<F>(i, space.forward(k * 7 % kFlows), flags);
    }
  };
  FrameRing ring;
  for (const std::uint8_t flags : {core::kTcpSyn, core::kTcpAck}) {
    for (std::uint32_t k = 0; k < kFlows; k += FrameRing::kFrames) {
      fill(ring, k, flags);
      for (std::size_t b = 0; b < FrameRing::kBursts; ++b) {
        rig->poll(&ring.packet(b * pipeline::kBurst), pipeline::kBurst);
      }
    }
  }
  forwarded(name, *rig, [&](FrameRing& r, std::uint64_t round) {
    fill(r, static_cast<std::uint32_t>(round * FrameRing::kFrames), core::kTcpAck);
  });
}

/// Packets of flows that are none of ours: on to the host.
template <class F>
void host_bound(const char* name, const RigConfig& config) {
  const auto rig = make_rig(config);
  if (rig == nullptr) {
    return;
  }
  const FlowSpace<F> space{kFlows, Rig::kBackends};
  FrameRing ring;
  scenario(
      name, ring,
      [&](FrameRing& r, std::uint64_t round) {
        for (std::size_t i = 0; i < FrameRing::kFrames; ++i) {
          auto key = space.forward(static_cast<std::uint32_t>(round * FrameRing::kFrames + i));
          key.dst = numbered<F>(99, 1);
          r.put<F>(i, key, core::kTcpAck);
        }
      },
      [&](const pipeline::Packet* p, std::uint32_t n) { rig->poll(p, n); });
  if (rig->out().lost() != kRounds * FrameRing::kFrames) {
    fail(std::string(name) + ": not every frame went to the host:" + rig->counters());
  }
}

/// SYNs of flows never seen.
template <class F>
void new_flows(const char* name, RigConfig config) {
  config.connections = 32'000;
  const auto rig = make_rig(config);
  if (rig == nullptr) {
    return;
  }
  const FlowSpace<F> space{UINT32_MAX, Rig::kBackends};
  std::uint32_t next = 0;
  FrameRing ring;
  scenario(
      name, ring,
      [&](FrameRing& r, std::uint64_t) {
        for (std::size_t i = 0; i < FrameRing::kFrames; ++i) {
          r.put<F>(i, space.forward(next++), core::kTcpSyn);
        }
      },
      [&](const pipeline::Packet* p, std::uint32_t n) { rig->poll(p, n); });
  if (rig->out().sent() != next) {
    fail(std::string(name) + ": not every flow was opened:" + rig->counters());
  }
}

/// Beyond what a worker opens in a flood: nearly all frames are dropped.
template <class F>
void flood(const char* name, RigConfig config) {
  config.limits_new_flows = true;
  config.connections = kFlows;
  const auto rig = make_rig(config);
  if (rig == nullptr) {
    return;
  }
  const FlowSpace<F> space{UINT32_MAX, Rig::kBackends,
                           static_cast<std::uint8_t>(config.protocol)};
  std::uint32_t next = 0;
  const auto fill = [&](FrameRing& r, std::uint64_t) {
    for (std::size_t i = 0; i < FrameRing::kFrames; ++i) {
      r.put<F>(i, space.forward(next++), core::kTcpSyn);
    }
  };
  FrameRing ring;
  for (std::uint32_t burst = 0; burst < pipeline::WorkerConfig{}.flood_bursts; ++burst) {
    fill(ring, burst);
    rig->poll(&ring.packet(0), pipeline::kBurst);
  }
  const std::uint64_t before = rig->out().sent();
  scenario(name, ring, fill,
           [&](const pipeline::Packet* p, std::uint32_t n) { rig->poll(p, n); });
  if (rig->out().sent() - before != kRounds * FrameRing::kBursts) {
    fail(std::string(name) + ": not one flow a burst was opened:" + rig->counters());
  }
}

}  // namespace
}  // namespace sluice::bench

int main() {
  using namespace sluice::bench;
  using sluice::core::Family;
  using sluice::core::Ipv4;
  using sluice::core::Ipv6;
  using sluice::core::Protocol;
  using sluice::pipeline::MemoryPace;
  if (!start_eal(false, 128)) {
    std::fprintf(stderr, "check: the EAL did not start\n");
    return 1;
  }
  CALLGRIND_START_INSTRUMENTATION;
  core_scenarios<Ipv4>("4");
  core_scenarios<Ipv6>("6");
  constexpr auto k4 = Family::kIpv4;
  constexpr auto k6 = Family::kIpv6;
  established<Ipv4>("nat4", {.family = k4, .connections = kFlows});
  established<Ipv6>("nat6", {.family = k6, .connections = kFlows});
  // As on cores that look flows up in groups; valgrind's does not.
  constexpr MemoryPace kGroups{.lines_ahead = 128, .group = 32};
  established<Ipv4>("nat4_groups", {.family = k4, .connections = kFlows, .pace = kGroups});
  established<Ipv6>("nat6_groups", {.family = k6, .connections = kFlows, .pace = kGroups});
  established<Ipv4>("udp4", {.family = k4, .connections = kFlows, .protocol = Protocol::kUdp});
  established<Ipv4>("fullnat4", {.family = k4, .connections = kFlows, .fullnat = true});
  established<Ipv6>("fullnat6", {.family = k6, .connections = kFlows, .fullnat = true});
  one_way<Ipv4>("dr4", {.family = k4, .connections = kFlows, .dr = true});
  one_way<Ipv6>("dr6", {.family = k6, .connections = kFlows, .dr = true});
  one_way<Ipv4>("ipip4", {.family = k4, .connections = kFlows, .ipip = true});
  one_way<Ipv6>("ipip6", {.family = k6, .connections = kFlows, .ipip = true});
  established<Ipv4>("handed_over4", {.family = k4, .connections = kFlows, .handed_over = true});
  established<Ipv6>("handed_over6", {.family = k6, .connections = kFlows, .handed_over = true});
  host_bound<Ipv4>("host4", {.family = k4, .connections = kFlows});
  host_bound<Ipv6>("host6", {.family = k6, .connections = kFlows});
  new_flows<Ipv4>("new_nat4", {.family = k4});
  new_flows<Ipv6>("new_nat6", {.family = k6});
  new_flows<Ipv4>("new_fullnat4", {.family = k4, .fullnat = true});
  // What the first packet costs where nobody remembers yet whose it is: the owner is worked out.
  new_flows<Ipv4>("new_handed4", {.family = k4, .handed_over = true});
  new_flows<Ipv4>("new_affinity4", {.family = k4, .affinity = true});
  flood<Ipv4>("flood4", {.family = k4});
  flood<Ipv6>("flood6", {.family = k6});
  flood<Ipv4>("flood_udp4", {.family = k4, .protocol = Protocol::kUdp});
  return failed ? 1 : 0;
}
