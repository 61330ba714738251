#pragma once

#include <cstdint>
#include <vector>

#include "control/compile/slices.h"
#include "control/compile/topology.h"

namespace sluice::compile {

/// Why an endpoint is in a candidate list or not.
enum class Admission : std::uint8_t {
  kReady,        ///< in: ready (C-2)
  kFallback,     ///< in: no ready one is there, this one is terminating but serves (C-3)
  kNotReady,     ///< out (C-4)
  kTerminating,  ///< out: terminating but serving, and a ready one is there
  kOtherNode,    ///< out: its hints name other nodes (T-5)
  kOtherZone,    ///< out: its hints name other zones (T-5)
  kNotLocal,     ///< out of the local list: on another node (M-6)
  kNoWeight,     ///< out: weight 0
};
[[nodiscard]] constexpr bool admitted(Admission a) {
  return a == Admission::kReady || a == Admission::kFallback;
}

/// How the lists of one service port came about. Entries by index into `merged`; a list the
/// service port does not use is empty.
struct SelectionRecord {
  TopologyChoice topology;  ///< points into `merged`
  std::vector<Admission> cluster;
  std::vector<Admission> local;
};

/// Fills the lists and flags of `block` (cluster, local, all_reachable, has_*), whose policies and
/// endpoints are set already. `merged[i]` is where `block.endpoints[i]` came from. An endpoint of
/// weight 0 is in no list, as if it were absent.
void select_endpoints(const std::vector<MergedEndpoint>& merged, const NodeContext& node,
                      core::ServicePort& block);

/// The same code, which also writes down why.
void select_endpoints(const std::vector<MergedEndpoint>& merged, const NodeContext& node,
                      core::ServicePort& block, SelectionRecord& record);

}  // namespace sluice::compile
