#pragma once

#include <array>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kni/iptables/ruleset.h"

namespace sluice::kni::ipt {

/// What of iptables-save's answer matters to us. Pure; fed line by line.
class Present {
 public:
  struct InTable {
    std::set<std::string, std::less<>> chains;  ///< named KUBE-*
    /// Rules of built-in chains that go where our hooks go: chain and rest, as saved.
    std::vector<std::pair<std::string, std::string>> hooks;
    /// Chains of ours: how many rules they have, and a digest of what they say (never 0).
    struct Seen {
      std::size_t rules = 0;
      std::uint64_t digest = 1;
    };
    std::unordered_map<std::string, Seen> ours;
    /// Chains of ours that rules of others go to.
    std::set<std::string, std::less<>> wanted_by_others;
  };

  void take(std::string_view line);

  [[nodiscard]] const InTable& of(Table table) const noexcept {
    return tables_[static_cast<std::size_t>(table)];
  }
  [[nodiscard]] bool has_hook(const Hook& hook) const;
  /// The chain that is shared with kubelet has the rule that keeps others off loopback (NP-6).
  [[nodiscard]] bool guards_loopback() const noexcept { return guards_loopback_; }
  /// The other rules of that chain: a sync empties it and writes them back (IT-3).
  [[nodiscard]] const std::vector<std::string>& shared_firewall() const noexcept {
    return shared_firewall_;
  }
  [[nodiscard]] std::size_t rules() const noexcept { return rules_; }
  /// Somebody's chains say that this variant of iptables is the one in use on this host.
  [[nodiscard]] bool has_hints() const;
  /// Our chains, or kube-proxy's, are there.
  [[nodiscard]] bool has_ours() const;

 private:
  void take_rule(std::string_view chain, std::string_view rule);

  std::array<InTable, kTables.size()> tables_;
  InTable* table_ = nullptr;
  bool guards_loopback_ = false;
  std::vector<std::string> shared_firewall_;
  std::size_t rules_ = 0;
};

/// A chain that we make and remove: fixed names and those of service ports. Not KUBE-FIREWALL.
[[nodiscard]] bool is_ours(Table table, std::string_view chain);

}  // namespace sluice::kni::ipt
