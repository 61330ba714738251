#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "dataplane/core/fwd/forwarding_table.h"
#include "dataplane/core/sink.h"
#include "kni/nftables/layout.h"
#include "kni/nftables/ruleset.h"

namespace sluice::kni::nft {

// Pure: from tables to rule sets. render() makes all of it, render_change() only what two tables
// may have different, at a cost that grows with the change.

/// How many service ports use what is shared. A shape that picks and is not used any more is here
/// with 0 and keeps its chain until the next whole sync: making one anew costs a walk of the map.
struct Shares {
  std::uint32_t affinity = 0;  ///< service ports with session affinity: the set is there
  std::map<Shape, std::uint32_t> shapes;
  std::unordered_map<std::string, std::uint32_t> hairpins;
};

/// Both tables.
struct Rulesets {
  Ruleset v4;
  Ruleset v6;
  Rulesets() { v6.family = core::Family::kIpv6; }
  [[nodiscard]] Ruleset& of(core::Family f) { return f == core::Family::kIpv4 ? v4 : v6; }
};
struct SharesOfBoth {
  Shares v4;
  Shares v6;
  [[nodiscard]] Shares& of(core::Family f) { return f == core::Family::kIpv4 ? v4 : v6; }
  [[nodiscard]] const Shares& of(core::Family f) const {
    return f == core::Family::kIpv4 ? v4 : v6;
  }
};

/// By service port; those with nothing to say are absent.
using UnsupportedBySlot = std::map<core::ServiceSlot, std::vector<core::Unsupported>>;

/// Numbers under which sources are remembered.
using Memories = std::unordered_set<std::uint32_t>;

struct Rendered {
  Rulesets rulesets;
  SharesOfBoth shares;
  UnsupportedBySlot unsupported;
  Memories memories;  ///< in use
};
[[nodiscard]] Rendered render(const core::ForwardingTable& table, const Scope& scope = {});

/// What differs: `before` and `after` hold the same parts of both rule sets and nothing else.
struct RenderedChange {
  Rulesets before;
  Rulesets after;
  SharesOfBoth shares;            ///< of `after`: only counts that changed, or all
  bool whole = false;             ///< `shares` and `unsupported` are all there is
  UnsupportedBySlot unsupported;  ///< of touched service ports; empty: nothing to say any more
  /// Of endpoints and affinities that went: what is remembered goes with them.
  Memories forgotten;
};
/// @param shares  of the table `before`.
[[nodiscard]] RenderedChange render_change(const core::ForwardingTable& before,
                                           const core::ForwardingTable& after,
                                           const SharesOfBoth& shares,
                                           const Scope& scope = {});
/// Brings counts up to date after a change has come into force.
void merge(SharesOfBoth& shares, RenderedChange& change);

/// Adds the chains that stay without being used. Then `rulesets` is what the kernel has.
void add_unused(Rulesets& rulesets, const SharesOfBoth& shares, const core::NodePart& node);

}  // namespace sluice::kni::nft
