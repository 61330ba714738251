#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/core/fwd/forwarding_table.h"
#include "dataplane/core/net/address.h"
#include "dataplane/core/sink.h"

namespace sluice::conf {

// The configuration of one sluiced as plain values, and its loader. Every field has its default
// here; sluiced.yaml shows the same defaults and a test compares the two. Keys in the file are the
// member names with '-' for '_', nested as the structs are. The loader checks types, ranges and
// rules between fields; what only the machine can tell (does the device exist, is the core there)
// is checked by whoever uses the value.

/// How the node forwards. The loader refuses the kernel modes that are not built in.
enum class Mode : std::uint8_t { kDpdk, kNftables, kIptables };

/// What a worker does when there is nothing to receive (design: Idle).
enum class Idle : std::uint8_t { kAuto, kSpin, kYield, kSleep };

/// auto: hugepages when enough are free, else ordinary pages.
enum class Hugepages : std::uint8_t { kAuto, kOn, kOff };

enum class DetectLocal : std::uint8_t {
  kClusterCidr,
  kNodeCidr,
  kBridgeInterface,
  kInterfaceNamePrefix,
};

enum class LogLevel : std::uint8_t { kTrace, kDebug, kInfo, kWarn, kError };

/// kInverted is for tests: every packet belongs to another worker than the one it arrived at.
enum class OwnerMap : std::uint8_t { kNormal, kInverted, kLast };

/// An address with its prefix length; unlike Cidr it keeps the host bits.
struct InterfaceAddress {
  core::IpAddress address;
  std::uint8_t length = 0;  ///< 0..32 or 0..128
  bool operator==(const InterfaceAddress&) const = default;
};

struct Route {
  core::Cidr to;        ///< "default" in the file: 0.0.0.0/0 or ::/0 by the family of `via`
  core::IpAddress via;  ///< same family as `to`
  bool operator==(const Route&) const = default;
};

enum class DeviceKind : std::uint8_t {
  kPci,       ///< "0000:03:00.0"
  kVdev,      ///< a DPDK vdev string such as "net_memif0,role=client"
  kAfXdp,     ///< "af_xdp:IFNAME"
  kAfPacket,  ///< "af_packet:IFNAME"
  kAuto,      ///< "auto:IFNAME": af_xdp, or af_packet where XDP is missing
};

struct PortConfig {
  std::string name;    ///< [a-z0-9-], 1..11 characters: the tap "slc-NAME" must fit IFNAMSIZ
  std::string device;  ///< as written in the file
  DeviceKind kind = DeviceKind::kVdev;  ///< derived from `device`
  std::string target;  ///< PCI address, vdev string or interface name; derived from `device`
  std::vector<InterfaceAddress> addresses;  ///< put on the tap
  std::vector<Route> routes;                ///< put on the tap
  std::uint16_t mtu = 1500;                 ///< 1280..9600
  std::uint16_t queues = 0;                 ///< pairs; 0: one per worker
  std::uint16_t rx_descriptors = 1024;      ///< power of two, 64..32768
  std::uint16_t tx_descriptors = 1024;      ///< power of two, 64..32768
  std::vector<std::uint8_t> rss_key;        ///< 40 or 52 bytes; empty: the built-in key
  bool operator==(const PortConfig&) const = default;
};

struct WorkersConfig {
  std::uint32_t count = 1;                 ///< 1..128; follows `cores` when that is given
  std::vector<std::uint32_t> cores;        ///< CPU of each worker, no duplicates; empty: chosen
  std::vector<Idle> idle = {Idle::kAuto};  ///< one for all, or one per worker
  /// Idle strategy of worker `worker` (0-based, below count).
  [[nodiscard]] Idle idle_of(std::uint32_t worker) const noexcept {
    return idle.size() == 1 ? idle.front() : idle[worker];
  }
  bool operator==(const WorkersConfig&) const = default;
};

struct MemoryConfig {
  std::uint32_t mbufs = 0;  ///< 0: computed from queues and descriptors; else 1024..16777216
  Hugepages hugepages = Hugepages::kAuto;
  std::uint32_t mib = 0;  ///< memory of DPDK in MiB; 0: computed; else 64..1048576
  bool operator==(const MemoryConfig&) const = default;
};

struct TablesConfig {
  std::uint32_t services = 16384;       ///< service ports (port x family), 1..1048576
  std::uint32_t backends = 262144;      ///< endpoint ids, 1..16777216
  std::uint32_t connections = 1048576;  ///< per worker and family, 1024..67108864
  std::uint16_t next_hops = 4096;       ///< 16..65534
  std::uint32_t handover_ring = 1024;   ///< packets per ordered pair; power of two, 64..65536
  bool operator==(const TablesConfig&) const = default;
};

struct EalConfig {
  std::string file_prefix;              ///< empty: "sluice-" and the process id
  std::vector<std::string> extra_args;  ///< appended as they are
  bool operator==(const EalConfig&) const = default;
};

/// What this node is; completed from the Node object (fields as in compile::NodeConfig).
struct NodeSection {
  std::string name;                        ///< empty: the host name
  std::string zone;                        ///< empty: from the Node object
  std::vector<core::IpAddress> addresses;  ///< empty: from the Node object
  DetectLocal detect_local = DetectLocal::kClusterCidr;
  std::vector<core::Cidr> cluster_cidrs;
  std::vector<core::Cidr> pod_cidrs;  ///< for detect-local: node-cidr
  std::string bridge_interface;       ///< for detect-local: bridge-interface
  std::string interface_name_prefix;  ///< for detect-local: interface-name-prefix
  bool masquerade_all = false;
  std::uint8_t masquerade_bit = 14;              ///< 0..31
  std::vector<std::string> node_port_addresses;  ///< CIDRs, or the one word "primary"
  bool allow_service_external_ips = true;
  bool operator==(const NodeSection&) const = default;
};

struct SnatConfig {
  std::vector<core::IpAddress> addresses;   ///< empty: the node's address
  std::optional<std::uint16_t> first_port;  ///< empty: 1024 with own addresses; else
                                            ///< 40960, above what hosts use by default
  std::optional<std::uint16_t> last_port;   ///< empty: 65535
  /// The ports as meant.
  [[nodiscard]] std::uint16_t first() const noexcept {
    return first_port.value_or(addresses.empty() ? 40960 : 1024);
  }
  [[nodiscard]] std::uint16_t last() const noexcept { return last_port.value_or(65535); }
  bool operator==(const SnatConfig&) const = default;
};

struct IpipConfig {
  /// Prefixes of outer source addresses, at most one per family; empty: the port's own address.
  std::vector<core::Cidr> sources;
  bool operator==(const IpipConfig&) const = default;
};

/// Idle time after which a connection in this state is forgotten; 1 s .. 24 h. Near IPVS.
struct TimeoutsConfig {
  using Seconds = std::chrono::seconds;
  Seconds tcp_syn_sent{60};
  Seconds tcp_syn_received{60};
  Seconds tcp_established{900};
  Seconds tcp_fin_wait{120};
  Seconds tcp_time_wait{60};
  Seconds tcp_closed{10};
  Seconds udp_new{60};
  Seconds udp_stream{300};
  Seconds sctp_init{60};
  Seconds sctp_established{900};
  Seconds sctp_shutdown{30};
  bool operator==(const TimeoutsConfig&) const = default;
};

/// /healthz and /livez of the node.
struct HealthzConfig {
  std::string address = "0.0.0.0:10256";  ///< forms: http::parse_bind_address(); empty: off
  bool bind_hard_fail = false;            ///< a busy address ends the start
  bool operator==(const HealthzConfig&) const = default;
};

/// /metrics, /proxyMode and /configz of the node.
struct MetricsConfig {
  std::string address = "127.0.0.1:10249";  ///< forms: http::parse_bind_address(); empty: off
  bool bind_hard_fail = false;              ///< a busy address ends the start
  bool operator==(const MetricsConfig&) const = default;
};

/// The kernel's table of flows, in the kernel modes; rules CT-7..CT-9.
struct ConntrackConfig {
  using Seconds = std::chrono::seconds;
  std::uint32_t max_per_core = 32768;  ///< 0: the limit is left alone
  std::uint32_t min = 131072;
  Seconds tcp_established_timeout{std::chrono::hours(24)};  ///< 0: left alone, as all below
  Seconds tcp_close_wait_timeout{std::chrono::hours(1)};
  Seconds udp_timeout{0};
  Seconds udp_stream_timeout{0};
  bool tcp_be_liberal = false;
  bool operator==(const ConntrackConfig&) const = default;
};

/// Mode iptables.
struct IptablesConfig {
  enum class Variant : std::uint8_t { kAuto, kLegacy, kNft };
  Variant variant = Variant::kAuto;  ///< auto: the one that this host's rules are in
  bool localhost_node_ports = true;  ///< NP-6
  bool operator==(const IptablesConfig&) const = default;
};

struct Config {
  Mode mode = Mode::kDpdk;
  /// Mode dpdk: the kernel mode for what begins on the host itself; empty: none.
  std::optional<Mode> host_mode;
  /// Mode dpdk: at least one, names and devices are unique. Kernel modes: none.
  std::vector<PortConfig> ports;
  WorkersConfig workers;
  MemoryConfig memory;
  TablesConfig tables;
  EalConfig eal;
  NodeSection node;
  std::vector<core::Cidr> announce;  ///< ARP and ND are answered for VIPs inside; default none
  SnatConfig snat;
  IpipConfig ipip;
  TimeoutsConfig timeouts;
  core::SchedulerKind scheduler = core::SchedulerKind::kRandom;  ///< of Services that name none
  /// "unix:/path" or "127.0.0.1:port" / "[::1]:port" (any loopback address).
  std::string listen = "unix:/run/sluice/sluiced.sock";
  HealthzConfig healthz;
  MetricsConfig metrics;
  /// Longest wait before a failed apply is retried; twice that and the node is unhealthy.
  std::chrono::seconds sync_period{30};
  /// Shortest time between two applies; empty: 1 s in kernel modes, else none.
  std::optional<std::chrono::seconds> min_sync_period;
  ConntrackConfig conntrack;
  IptablesConfig iptables;
  std::string state_dir = "/var/lib/sluice";  ///< last good snapshot; empty: none is kept
  LogLevel log_level = LogLevel::kInfo;
  OwnerMap test_owner_map = OwnerMap::kNormal;  ///< for tests; not in sluiced.yaml
  bool operator==(const Config&) const = default;

  /// `min_sync_period` as meant (SY-5).
  [[nodiscard]] std::chrono::seconds min_sync() const {
    const bool kernel = mode != Mode::kDpdk || host_mode.has_value();
    return min_sync_period.value_or(std::chrono::seconds(kernel ? 1 : 0));
  }
};

/// Reads and checks a configuration file.
/// Errors: one line, "FILE:LINE: FIELD: what is expected" (FIELD as in "ports[0].mtu"; left out for
/// faults of the whole document). Nothing is half-applied. Thread: any. Never throws.
/// @param mode  of the command line; wins over the file's.
[[nodiscard]] core::Result<Config> load(const std::string& path,
                                        std::optional<Mode> mode = std::nullopt);

/// The same for text already read; `file` only names it in errors.
[[nodiscard]] core::Result<Config> parse(std::string_view text, const std::string& file,
                                         std::optional<Mode> mode = std::nullopt);

/// "dpdk", "nftables", ...
[[nodiscard]] const char* name_of(Mode mode) noexcept;

/// The mode of that name. Errors: no such mode, or one that is not built in; one line.
[[nodiscard]] core::Result<Mode> parse_mode(std::string_view word);

}  // namespace sluice::conf
