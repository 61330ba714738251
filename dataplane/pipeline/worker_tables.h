#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/core/fwd/forwarding_table.h"
#include "dataplane/pipeline/departures.h"
#include "dataplane/pipeline/next_hop.h"
#include "dataplane/pipeline/packet.h"
#include "dataplane/pipeline/snapshot_cell.h"
#include "dataplane/pipeline/source_pool.h"
#include "dataplane/pipeline/steering_book.h"

namespace sluice::pipeline {

/// One port as the workers need it. Mirrored from the host side; the I/O layer knows the rest.
struct PortInfo {
  bool present = false;
  /// A kernel feeds this port (af_packet, af_xdp, tap): unfinished L4 checksums are completed.
  bool rx_partial_csum = false;
  std::uint16_t mtu = 1500;                ///< IP bytes
  core::MacAddress mac;                    ///< of the port and of its tap
  std::vector<core::IpAddress> addresses;  ///< of the tap: sources of ICMP and of translation
  std::string ingress;                     ///< interface name that the local detector sees
  bool operator==(const PortInfo&) const = default;
};
using PortInfos = std::array<PortInfo, kMaxPorts>;

/// An address this node answers ARP and neighbour solicitations for.
struct Announced {
  core::IpAddress address;
  std::uint64_t since = 0;  ///< sequence of the view in which it appeared
};

/// Everything a worker reads in a poll, behind one pointer. Parts are shared between views: a
/// change of one endpoint makes a new table and book and reuses the rest.
struct WorkerTables {
  std::uint64_t sequence = 0;  ///< grows with every view
  /// Grows when a destination of UDP leaves or routes change: an entry judged at another epoch is
  /// looked at again, if what changed can concern it (`departures`).
  std::uint32_t epoch = 0;
  std::shared_ptr<const Departures> departures;  ///< never null
  core::TablePtr table;  ///< never null
  std::shared_ptr<const SteeringBook> book;
  std::shared_ptr<const RouteTable> routes;
  std::shared_ptr<const PortInfos> ports;
  std::shared_ptr<const std::vector<Announced>> announced;  ///< sorted by address
  std::shared_ptr<const SourcePool> source_pool;
  std::shared_ptr<const core::PortSet> excluded;  ///< ports that source translation leaves alone

  [[nodiscard]] const PortInfo& port(PortIndex p) const noexcept {
    return (*ports)[static_cast<std::size_t>(p) % kMaxPorts];
  }
};

using TablesCell = SnapshotCell<WorkerTables>;

/// @return nullptr: not announced.
[[nodiscard]] const Announced* find_announced(const WorkerTables& tables,
                                              const core::IpAddress& address) noexcept;

/// The address of `port` (or else of the node) that packets of this family leave with.
/// @return nullptr: none known.
[[nodiscard]] const core::IpAddress* own_address(const WorkerTables& tables, PortIndex port,
                                                 core::Family family) noexcept;

/// True when `address` is assigned to a port's tap or to the host.
[[nodiscard]] bool is_host_address(const WorkerTables& tables,
                                   const core::IpAddress& address) noexcept;

/// The route to `address` by a port of ours. @return nullptr: the host delivers it.
[[nodiscard]] const Route* route_of(const WorkerTables& tables,
                                    const core::IpAddress& address) noexcept;

/// The service port a frontend leads to. @return nullptr: no such frontend.
[[nodiscard]] const core::ServicePort* service_of_frontend(const core::ForwardingTable& table,
                                                           const core::IpAddress& address,
                                                           std::uint16_t port,
                                                           core::Protocol protocol) noexcept;

/// CT-2: the service port has an endpoint that serves.
[[nodiscard]] bool any_serving(const core::ServicePort& service) noexcept;

/// The frontend of the current table at exactly this address: of a VIP, cluster IP or external IP.
[[nodiscard]] std::optional<core::Frontend> exact_frontend(const core::ForwardingTable& table,
                                                           const L4Address& to) noexcept;

/// It is a node port on a node-port address.
[[nodiscard]] bool is_node_port(const core::ForwardingTable& table, const L4Address& to) noexcept;

}  // namespace sluice::pipeline
