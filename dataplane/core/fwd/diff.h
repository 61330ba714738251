#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/core/fwd/forwarding_table.h"

namespace sluice::core {

/// An endpoint of the older table that the newer one has not.
struct DepartedEndpoint {
  ServiceSlot slot = ServiceSlot::kNone;
  EndpointId id = EndpointId::kNone;
  Protocol protocol = Protocol::kTcp;
  IpAddress address;
  std::uint16_t port = 0;   ///< host order
  bool service_left = false;  ///< the whole service port is gone
  bool operator==(const DepartedEndpoint&) const = default;
};

/// What changed between two tables. Sorted by slot or key.
struct TableDiff {
  std::vector<ServiceSlot> added;
  std::vector<ServiceSlot> changed;
  std::vector<ServiceSlot> removed;
  std::vector<FrontendKey> frontends_added;
  std::vector<FrontendKey> frontends_changed;  ///< another slot or kind
  std::vector<FrontendKey> frontends_removed;
  std::vector<DepartedEndpoint> departed;
  bool node_changed = false;
  [[nodiscard]] bool empty() const noexcept {
    return added.empty() && changed.empty() && removed.empty() && frontends_added.empty() &&
           frontends_changed.empty() && frontends_removed.empty() && !node_changed;
  }
};

/// Compares by pages and shards first, so its cost grows with the change.
/// Thread: any; allocates.
[[nodiscard]] TableDiff diff(const ForwardingTable& before, const ForwardingTable& after);

/// The slots whose service port a change touches: by its block or by a frontend that it has or had.
/// Sorted. @param diff  of the two tables.
[[nodiscard]] std::vector<ServiceSlot> touched_slots(const TableDiff& diff,
                                                     const ForwardingTable& before,
                                                     const ForwardingTable& after);

}  // namespace sluice::core
