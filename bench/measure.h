#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "bench/clock.h"
#include "bench/traffic.h"

namespace sluice::bench {

/// Times `run(packets, kBurst)` over rounds of FrameRing::kBursts bursts. Making the frames is not
/// timed.
/// @param fill  (ring, round): puts the frames of one round.
/// @param quantile  which round is told: 0.5 is the median, as interrupts and other programs hit
///                  single rounds (a round is a few microseconds) and the fastest ones flatter;
///                  a low one shows on a busy machine what the core does when its sibling rests.
/// @return cycles per packet of that round.
template <class Fill, class Run>
[[nodiscard]] double cycles_per_packet(double cycles_per_tick, double quantile,
                                       std::uint64_t rounds,
                                       FrameRing& ring, Fill&& fill, Run&& run) {
  std::vector<std::uint64_t> ticks;
  ticks.reserve(rounds);
  for (std::uint64_t r = 0; r < rounds; ++r) {
    fill(ring, r);
    const std::uint64_t start = tsc();
    for (std::size_t b = 0; b < FrameRing::kBursts; ++b) {
      run(&ring.packet(b * pipeline::kBurst), static_cast<std::uint32_t>(pipeline::kBurst));
    }
    ticks.push_back(tsc() - start);
  }
  // The first rounds meet cold code and a cold table.
  ticks.erase(ticks.begin(), ticks.begin() + static_cast<long>(ticks.size() / 10));
  const auto told =
      ticks.begin() + static_cast<long>(static_cast<double>(ticks.size() - 1) * quantile);
  std::nth_element(ticks.begin(), told, ticks.end());
  return static_cast<double>(*told) / FrameRing::kFrames * cycles_per_tick;
}

}  // namespace sluice::bench
