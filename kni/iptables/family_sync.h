#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "dataplane/core/metrics.h"
#include "kni/iptables/left_behind.h"
#include "kni/iptables/programs.h"
#include "kni/iptables/sync_text.h"

namespace sluice::kni::ipt {

/// Reads by any thread.
struct FamilyCounters {
  std::atomic<std::uint64_t> full_syncs{0};
  std::atomic<std::uint64_t> partial_syncs{0};
  std::atomic<std::uint64_t> sync_failures{0};     ///< restores that failed, of either kind
  std::atomic<std::uint64_t> partial_failures{0};  ///< of those, partial ones
  std::atomic<std::uint64_t> repairs{0};           ///< our chains had been changed from outside
  std::atomic<std::uint64_t> filter_rules{0};      ///< ours, as if fully written
  std::atomic<std::uint64_t> nat_rules{0};
  std::atomic<std::uint64_t> last_filter_rules{0};  ///< written by the last sync
  std::atomic<std::uint64_t> last_nat_rules{0};
  core::SyncDurations durations;
};

struct SyncOptions {
  RenderOptions render;
  /// Our chains are looked at this often; in a large cluster stale ones are deleted this often.
  std::chrono::milliseconds sync_period{30000};
  std::function<void(const std::string&)> warn;  ///< takes a line for the log; may be empty
  Ending ending;  ///< a sync that was broken off is not begun anew then
  /// Set to 1 when the rule that makes it safe is in force; then node ports answer on loopback
  /// (NP-6).
  std::string route_localnet = "/proc/sys/net/ipv4/conf/all/route_localnet";
  std::function<std::chrono::steady_clock::time_point()> clock = [] {
    return std::chrono::steady_clock::now();
  };
};

// Theory of operation
//
// One family's chains are kept as the table says. A sync is whole (everything is written over what
// is there, hooks and canaries included) or partial (the shared chains and those of service ports
// that changed; SY-6). Whole are the first one, one after a failure, after a change of what all
// chains follow from, when the chains were changed from outside, and every hour in a small cluster.
// A partial one that fails is followed by a whole one at once.
//
// Changes from outside: once a sync period all is listed and compared chain by chain with what was
// left (left_behind.h), with the hooks, and with the rule that makes loopback safe to route. That
// one is in a chain that is kubelet's as well; a sync writes back what others have there (IT-3: a
// chain line empties).

/// Keeps one family. Thread: one, but counters.
class FamilySync {
 public:
  /// @param runner, options, counters  borrowed; outlive this.
  FamilySync(Runner& runner, Programs programs, const SyncOptions& options,
             FamilyCounters& counters);

  /// Errors: one line; what was in force still is, up to whole commits.
  core::Result<void> apply(const core::TablePtr& table);
  [[nodiscard]] const Programs& programs() const noexcept { return programs_; }
  [[nodiscard]] const RenderOptions& render_options() const noexcept { return render_; }

 private:
  using TimePoint = std::chrono::steady_clock::time_point;

  core::Result<void> sync(const core::ForwardingTable& table);
  [[nodiscard]] bool whole_is_due(const core::ForwardingTable& table) const;
  /// Forgets what is in force if it is not any more.
  core::Result<void> look_around();
  [[nodiscard]] bool is_as_left(const Present& present);
  core::Result<std::vector<std::string>> others_in_firewall();
  void let_loopback_be_routed(const core::ForwardingTable& table) const;
  core::Result<void> sync_whole(const core::ForwardingTable& table);
  core::Result<void> sync_change(const core::ForwardingTable& table);
  [[nodiscard]] Ruleset make_shared(const core::ForwardingTable& table,
                                    const std::vector<core::ServiceSlot>& slots,
                                    const std::vector<std::string>& others) const;
  core::Result<void> restore(const SyncText& text, const core::ForwardingTable& table);
  [[nodiscard]] std::set<std::string> take_stale(const ServiceChange& change);
  void note(const SyncText& text);

  Runner& runner_;
  Programs programs_;
  const SyncOptions& options_;
  RenderOptions render_;
  FamilyCounters& counters_;
  core::TablePtr in_force_;  ///< null: unknown
  Ruleset shared_;           ///< in force
  bool large_ = false;
  bool lock_held_ = false;         ///< by another program, in the last restore
  std::size_t service_rules_ = 0;  ///< in chains of service ports
  LeftBehind left_;
  std::set<std::string> stale_;    ///< chains that wait for their deletion
  TimePoint last_whole_;
  TimePoint last_look_;
  TimePoint last_delete_;
};

}  // namespace sluice::kni::ipt
