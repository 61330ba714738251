#pragma once

#include <cstdint>

namespace sluice::dpdk {

/// Which kind of core a CPU has, as CPUID tells it.
struct CoreKind {
  bool amd = false;
  std::uint32_t family = 0;  ///< base and extended; 0: not x86
};

/// Of the CPU this runs on. Thread: any.
[[nodiscard]] CoreKind this_core() noexcept;

/// WorkerConfig::lines_ahead of such a core. Measured, established flows, no I/O, in turn:
///   Zen 3 (family 25), 64,000 flows   20 lines best: nat4 131 cycles with 32, 107 with 20
///   Zen 5 (family 26), 4 million      the more the better: nat4 149 cycles with 20, 128 with all
///                                     of a burst, nat6 192 and 137; 64,000 flows: all of them
///                                     cost 1 or 2 cycles of 67
/// Others get the 20.
[[nodiscard]] std::uint32_t lines_ahead(const CoreKind& kind) noexcept;

}  // namespace sluice::dpdk
