#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dataplane/core/fwd/forwarding_table.h"

namespace sluice::core {

// Level-based reconciliation of UDP flows (rules CT-1..CT-4, CT-6). A UDP flow has no end, so one
// whose backend left would go on into nothing. After a change the flows that exist are compared
// with what the table allows; it does not matter which change made them stale. Pure: the list of
// flows comes from the caller, the kernel's conntrack or a worker's own table. Thread: any.

/// One UDP flow as conntrack shows it: the original tuple and where replies come from.
struct UdpFlow {
  IpAddress source;
  std::uint16_t source_port = 0;
  IpAddress destination;
  std::uint16_t destination_port = 0;
  IpAddress reply_source;  ///< the backend, or the destination itself when never translated
  std::uint16_t reply_source_port = 0;
  bool operator==(const UdpFlow&) const = default;
};

/// CT-1: an endpoint set of a Service that has a UDP service port differs between two tables. A
/// change of the Service alone does not count. @param before nullptr: there was none.
[[nodiscard]] bool udp_endpoints_changed(const ForwardingTable* before,
                                         const ForwardingTable& after);

/// CT-3: the flow goes to a frontend or node port of `table`, and its backend is none of the
/// serving endpoints there. A service port without serving endpoints leaves its flows alone (CT-2).
[[nodiscard]] bool is_stale(const ForwardingTable& table, const UdpFlow& flow) noexcept;

/// Indices of the stale flows, ascending.
[[nodiscard]] std::vector<std::size_t> stale_udp_flows(const ForwardingTable& table,
                                                       std::span<const UdpFlow> flows);

}  // namespace sluice::core
