#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "dataplane/core/net/address.h"

namespace sluice::kni::ipt {

// The rule-set model: what our chains of one family hold, as plain values. render.h makes it from a
// ForwardingTable, sync_text.h writes it as input of iptables-restore.

enum class Table : std::uint8_t { kFilter, kNat, kMangle };
inline constexpr std::array kTables = {Table::kFilter, Table::kNat, Table::kMangle};
/// "filter", "nat", "mangle".
[[nodiscard]] const char* name_of(Table table) noexcept;

/// Rules by chain, without "-A CHAIN", in the words of iptables-restore.
using Chains = std::map<std::string, std::vector<std::string>>;

/// A rule in a built-in chain that leads to one of ours, in the words of iptables-save.
struct Hook {
  Table table = Table::kFilter;
  std::string chain;
  std::string target;
  std::string rule;
  bool operator==(const Hook&) const = default;
};

/// One family's chains. Hooks and canaries come on top.
struct Ruleset {
  core::Family family = core::Family::kIpv4;
  Chains filter;
  Chains nat;
};

}  // namespace sluice::kni::ipt
