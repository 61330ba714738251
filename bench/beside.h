#pragma once

#include <cstdint>

#include "bench/section.h"
#include "bench/targets.h"

namespace sluice::bench {

/// Established IPv4 NAT flows, no I/O, beside the same by one worker whose table does not change,
/// slice by slice in turn, because a machine's speed drifts: "beside_workers_2" is how much two
/// workers do together, each on a core of its own, "beside_changes" what is left while an endpoint
/// leaves or comes back every 10 ms.
/// @param section  the only one of the two that is measured.
/// @return false: a frame was not forwarded; it is told on standard error.
[[nodiscard]] bool measure_beside(double cycles_per_tick, std::uint64_t rounds,
                                  const Section& section, Results& results);

}  // namespace sluice::bench
