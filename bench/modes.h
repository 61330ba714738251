#pragma once

#include <cstdint>

#include "bench/section.h"
#include "bench/targets.h"

namespace sluice::bench {

/// Cycles per packet of every forwarding mode and family at 64,000 flows, of shares of packets that
/// are handed over, and of nat while an endpoint comes and goes every 10 ms: all printed, and as
/// "modes_NAME" in `results`. @return false when a row failed (said on stderr).
/// @param section  the only NAMEs that are measured.
[[nodiscard]] bool measure_modes(double cycles_per_tick, std::uint64_t rounds,
                                 const Section& section, Results& results);

}  // namespace sluice::bench
