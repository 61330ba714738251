#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::conformance {

/// One table in what iptables-save prints, or a section of input of iptables-restore.
struct IptablesTable {
  struct Rule {
    std::string text;           ///< without "-A CHAIN"
    std::uint64_t packets = 0;  ///< that it took; 0 where the text has no counters
  };
  std::vector<std::string> declared;  ///< chain lines, in order
  std::map<std::string, std::vector<Rule>> chains;
  std::vector<std::string> deleted;  ///< -X

  /// Rules of a chain as text; empty when there is no such chain.
  [[nodiscard]] std::vector<std::string> rules_of(const std::string& chain) const;
};

/// What iptables-save prints, or what restores made of it; by name of the table.
using IptablesText = std::map<std::string, IptablesTable>;
/// Input of iptables-restore: sections, each of a table and one commit.
using IptablesInput = std::vector<std::pair<std::string, IptablesTable>>;

/// Errors: std::runtime_error for a line that is of neither program.
[[nodiscard]] IptablesInput parse_restore(std::string_view text);
[[nodiscard]] IptablesText parse_save(std::string_view text);

/// What `chains` holds after input with --noflush: a declared chain begins empty, rules come behind
/// (-A) or on top (-I), -X removes. Rules of built-in chains are not told apart.
void play_restore(const IptablesInput& input, IptablesText& chains);

/// Two rules that are the same with other words for it have one form: quotes only where they are
/// needed, numbers of marks without leading zeros, single hosts without a prefix length.
[[nodiscard]] std::string canonical_rule(std::string_view rule);

}  // namespace sluice::conformance
