#pragma once

#include "bench/section.h"
#include "bench/targets.h"
#include "bench/turns.h"

namespace sluice::bench {

/// Established IPv4 NAT flows, no I/O, beside the same by one worker whose table does not change,
/// in turn: "workers_2/1" is how much two workers do together, each on a core of its own (here both
/// are on one, in turn, turns.h's Step); "probes_2/1", its floor, the same of two bare probes;
/// "changes_every_10ms_goodput" what is left while an endpoint leaves or comes back every 10 ms.
/// @param section  "beside_workers_2" or "beside_changes", whose cycles per packet are then told.
/// @return false: a frame was not forwarded; it is told on standard error.
[[nodiscard]] bool measure_beside(const TurnsConfig& turns, const Section& section,
                                  Results& results);

}  // namespace sluice::bench
