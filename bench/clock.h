#pragma once

#include <chrono>
#include <cstdint>
#include <tuple>
#include <utility>

#include <x86intrin.h>

namespace sluice::bench {

/// Time stamp counter, not before what stands before it in the program is done.
[[nodiscard]] inline std::uint64_t tsc() noexcept {
  unsigned aux = 0;
  return __rdtscp(&aux);
}

/// Ticks of the time stamp counter in a second, counted for 50 ms when first asked for.
[[nodiscard]] inline double ticks_per_second() noexcept {
  static const double found = [] {
    using Clock = std::chrono::steady_clock;
    const auto pair = [] {  // of both clocks, read so close together that nobody came between
      std::pair<std::uint64_t, Clock::time_point> closest;
      std::uint64_t gap = UINT64_MAX;
      // Where a read takes longer than that at any time, the closest pair has to do.
      for (int i = 0; i < 1000 && gap >= 2000; ++i) {
        const std::uint64_t before = tsc();
        const auto time = Clock::now();
        if (const std::uint64_t took = tsc() - before; took < gap) {
          gap = took;
          closest = {before, time};
        }
      }
      return closest;
    };
    const auto [first, start] = pair();
    auto [last, now] = pair();
    while (now - start < std::chrono::milliseconds(50)) {
      std::tie(last, now) = pair();
    }
    return static_cast<double>(last - first) / std::chrono::duration<double>(now - start).count();
  }();
  return found;
}

/// Core cycles per tick of the time stamp counter, by a chain of dependent additions (one cycle
/// each). The counter runs at a fixed rate whatever the core does; cycles are what carries over to
/// another clock.
[[nodiscard]] inline double cycles_per_tick() noexcept {
  constexpr std::uint64_t kSteps = 200'000;  // 70 us: mostly between two interrupts
  double best = 0;
  for (int run = 0; run < 1000; ++run) {
    std::uint64_t x = 1;
    const std::uint64_t start = tsc();
    for (std::uint64_t i = 0; i < kSteps; i += 10) {
      __asm__ volatile(
          "add %0, %0\n add %0, %0\n add %0, %0\n add %0, %0\n add %0, %0\n"
          "add %0, %0\n add %0, %0\n add %0, %0\n add %0, %0\n add %0, %0\n"
          : "+r"(x));
    }
    const double ratio = static_cast<double>(kSteps) / static_cast<double>(tsc() - start);
    best = ratio > best ? ratio : best;
  }
  return best;
}

}  // namespace sluice::bench
