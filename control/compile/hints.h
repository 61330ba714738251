#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "control/model/model.h"

namespace sluice::compile {

// Production of topology hints (rules TH-1..TH-9). A node never does this: it is the control
// plane's part, here for simulators and for feeds that have no such controller. Pure functions over
// the slices of one Service and address type. An endpoint counts as ready only when `ready` is
// explicitly true (TH-9).

enum class HintMode : std::uint8_t { kNone, kAuto, kSameZone, kSameNode };

/// TH-1: what the Service asks for.
[[nodiscard]] HintMode hint_mode(const model::Service& service);

/// A node as far as the proportional heuristic looks at it.
struct HintNode {
  std::string zone;              ///< "" : none
  std::int64_t milli_cpu = 0;    ///< allocatable
  bool ready = true;             ///< condition Ready
  std::set<std::string> labels;  ///< keys
};

/// Share of the CPU per zone; sums up to 1.
using ZoneRatios = std::map<std::string, double>;

/// TH-3. @return nullopt: node information is insufficient, or there are fewer than two zones.
[[nodiscard]] std::optional<ZoneRatios> zone_ratios(std::span<const HintNode> nodes);

/// Slices of one Service and address type, in the order of the controller.
struct HintSlices {
  std::vector<model::EndpointSlice> rewritten;  ///< are created or updated anyway
  std::vector<model::EndpointSlice> unchanged;  ///< are left as they are, if their hints are good
};

/// Hinted endpoints per zone.
using HintsPerZone = std::map<std::string, std::size_t>;

struct HintPlan {
  HintSlices slices;  ///< with the new hints; slices that change are `rewritten`
  /// Set: all hints were removed, and why (event TopologyAwareHintsDisabled).
  std::optional<std::string> withdrawn;
  HintsPerZone per_zone;  ///< kAuto only: the distribution to store (TH-8)
  std::size_t moved = 0;  ///< endpoints hinted to a zone that is not their own
};

/// TH-1, TH-2, TH-4..TH-7. @param ratios used by kAuto only.
[[nodiscard]] HintPlan plan_hints(HintMode mode, HintSlices slices,
                                  const std::optional<ZoneRatios>& ratios);

/// TH-8: a stored distribution that has to be made again when nodes change.
[[nodiscard]] bool hints_overloaded(const HintsPerZone& stored, const ZoneRatios& ratios);

}  // namespace sluice::compile
