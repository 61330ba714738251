#pragma once

#include <cstdint>

#include "bench/turns.h"
#include "dataplane/core/fwd/forwarding_table.h"

namespace sluice::bench {

inline constexpr std::uint32_t kTableFlows = 1'060'000;           ///< that the table has room for
inline constexpr std::uint32_t kLiveFlows = kTableFlows / 100 * 95;  ///< while as many come as go

/// Cycles for one new flow and the expiry of another, 1 million live: SYNs at 1.5 million a second
/// of the bench's clock, time-out of a half-open flow such that as many go as come. The figure is
/// of windows of some milliseconds: their low quantile and their median.
/// @param seconds  of that clock to measure; the target asks for 60, 0: an eighth of one.
/// @param scheduler  of the Service of all.
[[nodiscard]] Figure new_flow_cycles(const TurnsConfig& config, double seconds, bool& failed,
                                     core::SchedulerKind scheduler = core::SchedulerKind::kRandom);

/// Cycles for a whole TCP connection: SYN, SYN-ACK, ACK, request, answer with FIN, FIN, last ACK;
/// and the expiry of an older one, 1 million live.
[[nodiscard]] Figure whole_connection_cycles(const TurnsConfig& config, double seconds,
                                             bool& failed);

}  // namespace sluice::bench
