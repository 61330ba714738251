#pragma once

#include <chrono>
#include <cstdint>

namespace sluice::publish {

/// What decides whether a kernel sink is given the whole state or only what changed (SY-6, SY-7).
struct SyncSituation {
  bool first = false;  ///< nothing was applied yet
  bool previous_failed = false;
  bool topology_label_changed = false;  ///< the node's zone (T-7)
  std::chrono::seconds since_full{0};   ///< since the last full sync
  bool canary_lost = false;             ///< iptables: someone flushed the tables
  bool large_cluster = false;           ///< iptables (SY-8): no hourly full sync
  bool stale_deletion_failed = false;   ///< nftables: a chain is still there
};

/// SY-6.
[[nodiscard]] constexpr bool sync_is_full(const SyncSituation& s) {
  constexpr std::chrono::seconds kFullEvery = std::chrono::hours(1);
  return s.first || s.previous_failed || s.topology_label_changed || s.canary_lost ||
         s.stale_deletion_failed || (s.since_full > kFullEvery && !s.large_cluster);
}

}  // namespace sluice::publish
