#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/compile/conditions.h"
#include "control/compile/node_context.h"

namespace sluice::compile {

/// One endpoint of one (port name, protocol) after all slices were merged.
struct MergedEndpoint {
  core::IpAddress address;
  std::uint16_t port = 0;
  Conditions conditions;
  bool local = false;    ///< M-6
  /// Hints and weight; valid while the slices are.
  const model::SliceEndpoint* source = nullptr;
  /// "ip:port", the sort key (SL-7, SL-8)
  [[nodiscard]] std::string identity() const { return core::to_string(address, port); }
};

/// (port name, protocol)
using PortKey = std::pair<std::string, core::Protocol>;
using MergedPorts = std::map<PortKey, std::vector<MergedEndpoint>>;

/// Merges the slices of one Service for one family.
/// @param slices sorted by name, not null
/// @param lines  faults are added here, by slice
[[nodiscard]] MergedPorts merge_slices(const std::vector<const model::EndpointSlice*>& slices,
                                       core::Family family, const NodeContext& node,
                                       std::vector<ReportLine>& lines);

/// The family whose rules take this slice (O-4, SL-1); nullopt: none does.
[[nodiscard]] std::optional<core::Family> family_taking(const model::EndpointSlice& slice);

/// Faults that do not depend on the family: address type, protocols, port and weight ranges.
void check_slice(const model::EndpointSlice& slice, Reporter& report);
/// All faults that merge_slices() would report of this slice, and some of the warnings.
void check_slice_of(core::Family family, const model::EndpointSlice& slice, Reporter& report);

}  // namespace sluice::compile
