#pragma once

#include "bench/section.h"
#include "bench/targets.h"
#include "bench/turns.h"

namespace sluice::bench {

/// Cycles per packet of every forwarding mode and family at 64,000 flows, and of shares of packets
/// that are handed over, those of a family in turn: all printed, and as "modes_NAME" in `results`.
/// @param section  the only NAME that is measured.
/// @return false when one failed (told on standard error).
[[nodiscard]] bool measure_modes(const TurnsConfig& turns, const Section& section,
                                 Results& results);

}  // namespace sluice::bench
