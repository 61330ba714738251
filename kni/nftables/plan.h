#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "kni/nftables/ruleset.h"

namespace sluice::kni::nft {

/// What turns one rule set into another, in the order in which a transaction must have it. Refers
/// to the two rule sets it was made of: keep them. Pure.
struct Plan {
  template <class T>
  using Named = std::vector<std::pair<const std::string*, const T*>>;
  struct ElementChange {
    const std::string* set = nullptr;
    const SetSpec* spec = nullptr;  ///< never null in a plan
    std::vector<const Elements::value_type*> elements;
  };

  core::Family family = core::Family::kIpv4;
  std::vector<const std::string*> emptied;  ///< chains that lose all their rules
  std::vector<const std::string*> flushed;  ///< sets that lose all their elements
  std::vector<ElementChange> removed;       ///< with the values they had
  std::vector<const std::string*> deleted_chains;
  std::vector<const std::string*> deleted_sets;
  Named<SetSpec> new_sets;
  Named<Chain> new_chains;  ///< without rules
  Named<Chain> filled;      ///< chains that get their rules
  std::vector<ElementChange> added;

  [[nodiscard]] bool empty() const noexcept {
    return emptied.empty() && flushed.empty() && removed.empty() && deleted_chains.empty() &&
           deleted_sets.empty() && new_sets.empty() && new_chains.empty() && filled.empty() &&
           added.empty();
  }
};

/// Takes from `plan` what may come into force before the rest: plain chains with their rules, and
/// sets. Nothing goes there yet. Empty when the plan makes sets anew that are there.
/// A packet reads the rules as they were when it entered the first of them, but maps as they are: a
/// map element must never name a chain that is as young as itself, which that packet sees empty.
[[nodiscard]] Plan take_first(Plan& plan);

/// What is known of the elements that are there.
enum class Known : std::uint8_t {
  kElements,  ///< all of them
  kNone,      ///< nothing: every set is flushed and filled, which costs less than to read it
};

/// @param before  what is there; its rules need only digests. @param after  what is wanted, the
/// same parts of the table.
[[nodiscard]] Plan make_plan(const Ruleset& before, const Ruleset& after,
                             Known known = Known::kElements);

}  // namespace sluice::kni::nft
