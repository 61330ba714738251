#pragma once

#include <set>
#include <string>
#include <vector>

#include "dataplane/core/fwd/forwarding_table.h"
#include "kni/iptables/present.h"
#include "kni/iptables/render.h"
#include "kni/iptables/restore_text.h"

namespace sluice::kni::ipt {

// Theory of operation: what is sent, in which order
//
// The input of one run of iptables-restore has sections; each is one commit of one table, so the
// run may be killed between any two. Whatever is in force then, no rule leads to a chain that is
// not there or that is another Service's:
//   - chains of a service port are written in the commit that first leads to them, or before;
//   - chains are deleted in the commit that takes the last rule to them away, or later;
//   - refusals (filter) come before the translation they follow (nat) goes, and go after the
//     translation they gave way to has come; when both happen in one sync, the first filter section
//     has the old refusals and the new ones, and a last one only the new.
// The nftables-backed variant needs time that grows with the square of a section's chains: there
// the chains of service ports go ahead in sections of kServicesOfSection, before anything leads to
// them.
//
// The legacy variant has one section, and the program's own time in it grows with the square of the
// chains: it keeps names it was told in lists (512 of them, the latest name first), searches one
// for each name declared and each jump, and walks all chains once for every 355 new ones. So
// chains are declared kServicesOfPart Services at a time, right before the rules that lead to them.
// What is left of it nobody outside of the program can change.

inline constexpr std::size_t kServicesOfSection = 100;
inline constexpr std::size_t kServicesOfPart = 2000;

/// Numbers for the metrics, by table.
struct RuleCounts {
  std::size_t filter = 0;
  std::size_t nat = 0;
};

/// A run's input and what is in it.
struct SyncText {
  std::string text;
  RuleCounts written;
  RuleCounts total;  ///< as if all had been written
  WrittenChains chains = {};
};

/// Everything, over whatever is there. @param sections  the nftables-backed variant.
[[nodiscard]] SyncText write_whole(const core::ForwardingTable& table, core::Family family,
                                   const Ruleset& shared,
                                   const std::vector<core::ServiceSlot>& slots,
                                   const std::vector<Hook>& hooks, const Present& present,
                                   bool sections);

/// Chains of the service ports that two tables may have different.
struct ServiceChange {
  Chains chains;               ///< to write
  std::set<std::string> gone;  ///< that nothing leads to any more
  std::size_t rules_before = 0;
  std::size_t rules_after = 0;
  bool touched = false;  ///< some service port of the family
};
[[nodiscard]] ServiceChange render_change(const core::ForwardingTable& before,
                                          const core::ForwardingTable& after, core::Family family,
                                          bool comments);

/// The shared chains, and those of `change`. @param delete_now  chains to delete.
/// @param skip_equal  leave shared chains alone that are as before (a large cluster).
[[nodiscard]] SyncText write_change(const ServiceChange& change, const Ruleset& shared_before,
                                    const Ruleset& shared_after,
                                    const std::set<std::string>& delete_now, bool skip_equal);

/// Removes what is ours. Hooks first. Empty: nothing is there.
[[nodiscard]] std::string write_cleanup(const Present& present);

/// Printed name of the service port that a chain belongs to; empty: none of this table's.
[[nodiscard]] std::string service_of_chain(const core::ForwardingTable& table,
                                           std::string_view chain);

}  // namespace sluice::kni::ipt
