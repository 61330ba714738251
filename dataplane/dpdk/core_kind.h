#pragma once

#include <cstdint>

#include "dataplane/pipeline/worker_links.h"

namespace sluice::dpdk {

/// Which kind of core a CPU has, as CPUID tells it.
struct CoreKind {
  bool amd = false;
  std::uint32_t family = 0;  ///< base and extended; 0: not x86
};

/// Of the CPU this runs on. Thread: any.
[[nodiscard]] CoreKind this_core() noexcept;

/// WorkerConfig::pace of such a core. Measured in turn, established flows, no I/O, guests of a host
/// with pages of 4 KiB:
///   Zen 3 (family 25)  20 lines best: nat4 of 64,000 flows 131 cycles with 32, 107 with 20
///   Zen 5 (family 26)  the more lines the better. In groups of 32 nat6 of 64,000 flows 77 cycles
///                      instead of 118 while a neighbour fills the cache they share (75 instead of
///                      77 while none does); of 4 million nat4 127 instead of 130, nat6 139
///                      instead of 144
/// Others get what Zen 3 serves best.
[[nodiscard]] pipeline::MemoryPace memory_pace(const CoreKind& kind) noexcept;

}  // namespace sluice::dpdk
