#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "control/compile/shared_list.h"
#include "control/model/model.h"
#include "dataplane/core/fwd/forwarding_table.h"
#include "dataplane/core/sink.h"

namespace sluice::compile {

/// What this node is: from the configuration file, completed from the Node object.
struct NodeConfig {
  std::string node_name;
  std::string zone;                                 ///< "" : from the Node object's label
  std::vector<core::IpAddress> node_addresses;      ///< override; empty: from the Node object
  enum class DetectLocal : std::uint8_t { kClusterCidr, kNodeCidr, kBridgeInterface, kInterfaceNamePrefix };
  DetectLocal detect_local = DetectLocal::kClusterCidr;
  std::vector<core::Cidr> cluster_cidrs;
  std::string bridge_interface;
  std::string interface_name_prefix;
  bool masquerade_all = false;
  std::uint8_t masquerade_bit = 14;
  std::vector<std::string> node_port_addresses;     ///< CIDRs or "primary" (NP-1)
  bool allow_service_external_ips = true;           ///< S-2 gate
  std::vector<core::Cidr> announce;
  std::vector<core::IpAddress> snat_addresses;
  std::optional<std::uint16_t> snat_first_port;     ///< default 1024 with own addresses, else 40960
  std::optional<std::uint16_t> snat_last_port;      ///< default 65535
  std::vector<core::Cidr> tunnel_sources;           ///< at most one per family; outer sources of ipip
  core::SchedulerKind default_scheduler = core::SchedulerKind::kRandom;
  bool operator==(const NodeConfig&) const = default;
};

/// What rtnetlink says about the host.
struct HostState {
  struct LocalAddress {
    core::IpAddress address;
    std::string interface;
    bool operator==(const LocalAddress&) const = default;
  };
  std::vector<LocalAddress> addresses;
  bool operator==(const HostState&) const = default;
};

/// The column of 24.3. Workers and the pure core use nftables.
enum class Profile : std::uint8_t { kNftables, kIptables, kIpvs, kHns };

/// What was skipped and why, and who lost a contested frontend. One line an entry.
struct ReportLine {
  enum class Kind : std::uint8_t { kSkipped, kFrontendLost, kWarning };
  Kind kind = Kind::kSkipped;
  std::string object;  ///< "service ns/name" or "endpointslice ns/name"
  std::string field;   ///< path such as "spec.externalIPs[1]"
  std::string reason;  ///< one clear line
  bool operator==(const ReportLine&) const = default;
};
struct Report {
  SharedList<ReportLine> lines;  ///< by object; lines of one object in the order they were found
  /// Those of one object, "service ns/name".
  [[nodiscard]] std::span<const ReportLine> of(const std::string& object) const;
};

/// Service ports that have a health-check node port (section 14.1).
struct HealthPort {
  model::ObjectName service;
  core::Family family = core::Family::kIpv4;
  std::uint16_t port = 0;
  std::uint32_t local_endpoints = 0;
  bool operator==(const HealthPort&) const = default;
};

struct Compiled {
  core::TablePtr table;
  SharedList<HealthPort> health_ports;  ///< sorted by Service and family
  Report report;                        ///< all that holds now, not only what is new
};

class IdRegistry;

/// Compiles a whole state. Pure but for the ids it takes from `ids`.
/// @param previous  nullptr: none; blocks and shards equal to its own are shared
/// Errors: a violated table invariant (a bug): nothing was made, `previous` stays in force.
/// Bad parts of objects are no error: they are skipped and reported, the other Services go on (F39).
[[nodiscard]] core::Result<Compiled> compile_full(const model::ClusterState& state,
                                                  const NodeConfig& config, const HostState& host,
                                                  Profile profile, IdRegistry& ids,
                                                  core::TablePtr previous = nullptr);

}  // namespace sluice::compile
