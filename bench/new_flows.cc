#include "bench/new_flows.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <vector>

#include "bench/clock.h"
#include "bench/rig.h"
#include "bench/section.h"
#include "bench/traffic.h"
#include "bench/windows.h"

namespace sluice::bench {
namespace {

using core::Ipv4;
using Space = FlowSpace<Ipv4>;

constexpr std::uint32_t kMeasured = 3'000;  // bursts
constexpr double kFlowsPerSecond = 1.5e6;

/// Time-outs that keep `live` flows when `per_second` come.
core::ConnTimeouts timeouts_for(double live, double per_second) {
  core::ConnTimeouts timeouts;
  timeouts.of.fill(core::ticks_of_ms(static_cast<std::uint64_t>(live / per_second * 1000)));
  return timeouts;
}

std::unique_ptr<Rig> make_rig(std::uint64_t ns_per_poll, double per_second,
                              core::SchedulerKind scheduler, bool& failed) {
  RigConfig config;
  config.scheduler = scheduler;
  config.connections = kTableFlows;
  config.ns_per_poll = ns_per_poll;
  config.timeouts = timeouts_for(kLiveFlows, per_second);
  auto rig = Rig::create(config);
  if (!rig) {
    std::fprintf(stderr, "bench: %s\n", rig.error().message.c_str());
    failed = true;
    return nullptr;
  }
  return std::move(*rig);
}

/// One burst of frames and the time the workers took for it.
std::uint64_t timed_poll(Rig& rig, FrameRing& ring) {
  const std::uint64_t start = tsc();
  rig.poll(&ring.packet(0), pipeline::kBurst);
  return tsc() - start;
}

void put_replies(const Rig& rig, FrameRing& ring, std::vector<core::FlowKey4>& replies,
                 std::uint8_t flags, bool learn) {
  if (learn) {
    for (std::uint32_t o = 0; o < pipeline::kBurst; ++o) {
      const pipeline::Packet& p = rig.out().last(o);
      const auto i = reinterpret_cast<std::uintptr_t>(p.handle) - 1;
      const std::uint8_t* ip = p.data + 14;
      core::FlowKey4 sent{core::Be32::load(ip + 12),
                          core::Be32::load(ip + 16),
                          core::Be16::load(ip + 20),
                          core::Be16::load(ip + 22),
                          6,
                          {}};
      replies[i] = sent.reversed();
    }
  }
  for (std::uint32_t i = 0; i < pipeline::kBurst; ++i) {
    ring.put<Ipv4>(i, replies[i], flags);
  }
}

/// Mean of the polls that neither an interrupt nor another program hit.
double usual_mean(const std::vector<double>& ticks) {
  const double usual = median(ticks);
  double sum = 0;
  double counted = 0;
  for (const double t : ticks) {
    const bool interrupted = t > usual * 8;
    sum += interrupted ? 0 : t;
    counted += interrupted ? 0 : 1;
  }
  return sum / counted;
}

/// Expiry comes in lumps, once a tick of the table's clock, so a window is whole ticks and its
/// figure the mean of its bursts. What is more than whole ticks is there because bursts are: a
/// window never has fewer lumps than that.
/// @param ticks  of the time stamp counter, of each burst in order.
Figure figure_of(const TurnsConfig& config, const std::vector<double>& ticks, double per_second) {
  constexpr double kWindow = 5.0 * (std::uint64_t{1} << core::kTickShift) / 1e9;  // seconds
  const auto bursts = static_cast<std::size_t>(std::ceil(kWindow * per_second / pipeline::kBurst));
  std::vector<double> windows;
  for (std::size_t at = 0; at + bursts <= ticks.size(); at += bursts) {
    const auto first = ticks.begin() + static_cast<std::ptrdiff_t>(at);
    const std::vector<double> window(first, first + static_cast<std::ptrdiff_t>(bursts));
    windows.push_back(usual_mean(window) / pipeline::kBurst * config.cycles_per_tick);
  }
  return {percentile(windows, config.quantile), median(windows), quantile_name(config.quantile)};
}

/// Bursts of new flows that come in so many seconds of the bench's clock.
std::uint32_t bursts_in(double seconds, double per_second) {
  return std::max(kMeasured, static_cast<std::uint32_t>(seconds * per_second / pipeline::kBurst));
}

}  // namespace

Figure new_flow_cycles(const TurnsConfig& config, double seconds, bool& failed,
                       core::SchedulerKind scheduler) {
  const std::uint32_t measured = bursts_in(seconds, kFlowsPerSecond);
  const auto rig = make_rig(static_cast<std::uint64_t>(pipeline::kBurst / kFlowsPerSecond * 1e9),
                            kFlowsPerSecond, scheduler, failed);
  if (rig == nullptr) {
    return {};
  }
  FrameRing ring;
  const Space space{UINT32_MAX, Rig::kBackends};
  std::vector<double> ticks;
  std::uint32_t next = 0;
  const std::uint32_t warm = kTableFlows * 2 / pipeline::kBurst;
  std::optional<ProfileWindow> profiled;
  for (std::uint32_t burst = 0; burst < warm + measured; ++burst) {
    if (burst == warm) {
      profiled.emplace();
    }
    for (std::uint32_t i = 0; i < pipeline::kBurst; ++i) {
      ring.put<Ipv4>(i, space.forward(next++), core::kTcpSyn);
    }
    const std::uint64_t spent = timed_poll(*rig, ring);
    if (burst >= warm) {
      ticks.push_back(static_cast<double>(spent));
    }
  }
  if (rig->out().sent() != next || rig->connections() < kTableFlows * 9 / 10) {
    std::fprintf(stderr, "bench: new flows:%s\n", rig->counters().c_str());
    failed = true;
  }
  return figure_of(config, ticks, kFlowsPerSecond);
}

Figure whole_connection_cycles(const TurnsConfig& config, double seconds, bool& failed) {
  constexpr double kPerSecond = 0.5e6;
  const auto rig = make_rig(static_cast<std::uint64_t>(pipeline::kBurst / kPerSecond * 1e9 / 7),
                            kPerSecond, core::SchedulerKind::kRandom, failed);
  if (rig == nullptr) {
    return {};
  }
  FrameRing ring;
  const Space space{UINT32_MAX, Rig::kBackends};
  std::vector<core::FlowKey4> replies(pipeline::kBurst);
  std::uint64_t sum = 0;
  std::uint32_t next = 0;
  std::vector<double> ticks;
  const std::uint32_t warm = kTableFlows * 5 / 4 / pipeline::kBurst;
  const std::uint32_t measured = bursts_in(seconds, kPerSecond);
  const auto requests = [&](std::uint8_t flags) {
    for (std::uint32_t i = 0; i < pipeline::kBurst; ++i) {
      ring.put<Ipv4>(i, space.forward(next + i), flags);
    }
    sum += timed_poll(*rig, ring);
  };
  const auto answers = [&](std::uint8_t flags, bool learn) {
    put_replies(*rig, ring, replies, flags, learn);
    sum += timed_poll(*rig, ring);
  };
  std::optional<ProfileWindow> profiled;
  for (std::uint32_t burst = 0; burst < warm + measured; ++burst) {
    if (burst == warm) {
      profiled.emplace();
    }
    sum = 0;
    requests(core::kTcpSyn);
    answers(core::kTcpSyn | core::kTcpAck, true);
    requests(core::kTcpAck);
    requests(core::kTcpAck);
    answers(core::kTcpFin | core::kTcpAck, false);
    requests(core::kTcpFin | core::kTcpAck);
    answers(core::kTcpAck, false);
    next += pipeline::kBurst;
    if (burst >= warm) {
      ticks.push_back(static_cast<double>(sum));
    }
  }
  if (rig->out().sent() != std::uint64_t{next} * 7) {
    std::fprintf(stderr, "bench: connections:%s\n", rig->counters().c_str());
    failed = true;
  }
  return figure_of(config, ticks, kPerSecond);
}

}  // namespace sluice::bench
