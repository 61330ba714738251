#pragma once

#include <cstdint>

#include <x86intrin.h>

namespace sluice::bench {

/// Time stamp counter, not before what stands before it in the program is done.
[[nodiscard]] inline std::uint64_t tsc() noexcept {
  unsigned aux = 0;
  return __rdtscp(&aux);
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
