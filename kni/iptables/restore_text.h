#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kni/iptables/ruleset.h"

namespace sluice::kni::ipt {

/// Chains that an input declares or deletes, by table: how many rules each has behind it; absent
/// numbers are of deleted ones.
using WrittenChains =
    std::array<std::unordered_map<std::string, std::optional<std::size_t>>, kTables.size()>;

/// Input of `iptables-restore --noflush`: sections, each of one table and one commit. A chain that
/// is declared is emptied; what is not named stays as it is. A chain is declared before any rule
/// in it or to it.
class RestoreText {
 public:
  void begin(Table table);
  void declare(std::string_view chain);
  /// Declares all of them.
  void declare(const Chains& chains);
  void append(const Chains& chains);
  /// Puts the rule on top of its built-in chain.
  void insert(const Hook& hook);
  /// Takes away one rule that is as `rule` says.
  void take_out(std::string_view chain, std::string_view rule);
  /// Empties a chain that is there; the input fails when it is not. The legacy variant is done with
  /// it much sooner than with a declaration.
  void flush(std::string_view chain);
  /// Deletes a chain that was emptied in this section.
  void remove(std::string_view chain);
  void commit();

  [[nodiscard]] std::string take() { return std::move(text_); }
  [[nodiscard]] WrittenChains take_written() { return std::move(written_); }
  /// Rules appended to chains of that table.
  [[nodiscard]] std::size_t rules(Table table) const noexcept {
    return rules_[static_cast<std::size_t>(table)];
  }

 private:
  void line(std::string_view a, std::string_view b = {}, std::string_view c = {},
            std::string_view d = {});
  std::optional<std::size_t>& written(std::string_view chain) {
    return written_[static_cast<std::size_t>(table_)][std::string(chain)];
  }

  std::string text_;
  Table table_ = Table::kFilter;
  std::array<std::size_t, kTables.size()> rules_{};
  WrittenChains written_;
};

/// Puts chains in an order in which the legacy variant deletes many soon: by the ends of their
/// names, which are hashes. In the order of the names it would walk all chains for every 40.
void sort_for_deletion(std::vector<std::string>& chains);

/// A whole rule set as text, for goldens and checks.
[[nodiscard]] std::string ruleset_text(const Ruleset& ruleset);

/// The n-th line, from 1; empty: there is none.
[[nodiscard]] std::string_view line_of(std::string_view text, std::size_t n) noexcept;

}  // namespace sluice::kni::ipt
