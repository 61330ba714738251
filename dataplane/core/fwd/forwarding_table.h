#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/core/net/address.h"

namespace sluice::core {

// Theory of operation
//
// A ForwardingTable is the whole answer of one node at one moment: immutable, shared by workers and
// kernel adapters. It has a node part, service ports (immutable blocks, shared between
// generations, found by slot) and frontends (address or "node port", protocol, port -> slot).
// Blocks hang in pages of 256, frontends in shards, both behind shared_ptr: the next generation
// copies the pages and shards that changed and shares the rest. One endpoint change = one block,
// one page, one vector of page pointers. Everything is built by TableBuilder (table_builder.h);
// decide() (decide.h) is its meaning.
//
// A dual-stack Service port has one block per family (M-2: one engine per family).

/// Index of a service port in the table; stable while any generation or connection uses it.
enum class ServiceSlot : std::uint32_t { kNone = 0xffffffff };
/// Dense id of one (service port, ip:port); indexes the per-worker connection counts. Stable over
/// generations, given back only when no connection is left (F63).
enum class EndpointId : std::uint32_t { kNone = 0xffffffff };
/// Index into ServicePort::endpoints of one block.
enum class EndpointIndex : std::uint32_t { kNone = 0xffffffff };

enum class TrafficPolicy : std::uint8_t { kCluster, kLocal };
enum class SchedulerKind : std::uint8_t {
  kRandom, kRr, kWrr, kLc, kWlc, kLblc, kLblcr, kSh, kDh, kSed, kNq, kMh, kWrandom,
};
inline constexpr std::array kAllSchedulers = {
    SchedulerKind::kRandom, SchedulerKind::kWrandom, SchedulerKind::kRr, SchedulerKind::kWrr,
    SchedulerKind::kLc, SchedulerKind::kWlc, SchedulerKind::kLblc, SchedulerKind::kLblcr,
    SchedulerKind::kSh, SchedulerKind::kDh, SchedulerKind::kSed, SchedulerKind::kNq,
    SchedulerKind::kMh};
/// Forwarding mode a Service asks for; kByRule: nat, and fullnat whenever the rules masquerade.
enum class ForwardingMode : std::uint8_t { kByRule, kNat, kFullNat, kDr, kIpip };
enum class FrontendKind : std::uint8_t { kClusterIp, kExternalIp, kLoadBalancerVip, kNodePort };
/// What a frontend answers when there is nothing to send to (section 9).
enum class EmptyVerdict : std::uint8_t { kReject, kDrop };

/// One endpoint of a service port. All are kept, also those that take no new flow.
struct Endpoint {
  IpAddress address;
  std::uint16_t port = 0;     ///< host order, 1..65535
  std::uint16_t weight = 1;   ///< 0 takes no new flow: it is in none of the candidate lists
  EndpointId id = EndpointId::kNone;
  bool local = false;         ///< M-6
  bool ready = true;          ///< C-1 applied
  bool serving = true;
  bool terminating = false;
  bool operator==(const Endpoint&) const = default;
};

struct PickPlan;
/// What the scheduler has worked out of a candidate list (sched/pick_plan.h); null: nothing. It
/// follows from the rest of the block, so it has no part in comparisons.
struct PickPlanRef {
  std::shared_ptr<const PickPlan> plan;
  constexpr bool operator==(const PickPlanRef&) const noexcept { return true; }
};

/// Immutable block of one service port and family.
struct ServicePort {
  std::string name;           ///< printed name (M-3): "ns/name" or "ns/name:port"
  Family family = Family::kIpv4;
  Protocol protocol = Protocol::kTcp;
  std::uint16_t port = 0;     ///< port of cluster IP, external IPs and VIPs; host order
  std::uint16_t node_port = 0;               ///< 0: none
  std::uint16_t health_check_node_port = 0;  ///< 0: none (S-7)
  TrafficPolicy internal_policy = TrafficPolicy::kCluster;
  TrafficPolicy external_policy = TrafficPolicy::kCluster;
  bool uses_cluster = true;   ///< S-10
  bool uses_local = false;    ///< S-11
  bool externally_accessible = false;  ///< S-9
  bool has_any = false;       ///< EP-2/EP-4
  bool has_internal = false;  ///< EP-7
  bool has_external = false;  ///< EP-7
  bool local_is_terminating_fallback = false;  ///< EP-4: local list fell back
  EmptyVerdict internal_when_empty = EmptyVerdict::kReject;
  EmptyVerdict external_when_empty = EmptyVerdict::kReject;
  /// dr and ipip map no port: endpoints with another one cannot be reached by these frontends.
  bool mode_refuses_addresses = false;  ///< external IPs and VIPs
  bool mode_refuses_node_port = false;
  bool masquerade_external = false;  ///< P-5, eTP Cluster and no mode that overrides it
  SchedulerKind scheduler = SchedulerKind::kRandom;
  std::uint8_t scheduler_flags = 0;  ///< kSchedPort, kSchedFallback
  ForwardingMode mode = ForwardingMode::kByRule;
  std::uint32_t maglev_size = 0;     ///< slots of mh, sh and dh; 0: default
  std::uint32_t affinity_seconds = 0;  ///< 0: none
  std::int64_t created_unix_seconds = 0;  ///< creationTimestamp; absent = INT64_MAX (newest)
  /// Sources that may use the VIPs (F-2 already added); empty: no filter.
  std::vector<Cidr> allowed_sources;
  IpAddress cluster_ip;
  std::vector<IpAddress> external_ips;
  std::vector<IpAddress> load_balancer_vips;
  std::vector<Endpoint> endpoints;           ///< sorted by identity string (SL-8)
  /// Order of `endpoints` by (address, port) for find_endpoint(); filled by TableBuilder.
  std::vector<EndpointIndex> by_address;
  std::vector<EndpointIndex> cluster;        ///< EP-2
  std::vector<EndpointIndex> local;          ///< EP-4
  std::vector<EndpointIndex> all_reachable;  ///< EP-5
  PickPlanRef cluster_plan;                  ///< of `cluster`; filled by TableBuilder
  PickPlanRef local_plan;                    ///< of `local`
  bool operator==(const ServicePort&) const = default;

  [[nodiscard]] const Endpoint& endpoint(EndpointIndex i) const noexcept {
    return endpoints[static_cast<std::uint32_t>(i)];
  }
  /// @return nullptr when ip:port is not an endpoint of this block (removed). Logarithmic in a block
  /// of a table, linear in one that no TableBuilder has seen yet.
  [[nodiscard]] const Endpoint* find_endpoint(const IpAddress& ip, std::uint16_t port) const noexcept;
  /// P-4: the cluster IP has something to send to.
  [[nodiscard]] bool internal_dispatch() const noexcept { return has_internal; }
  /// P-5: external traffic is dispatched (it may still find no local endpoint).
  [[nodiscard]] bool external_dispatch() const noexcept {
    return has_any && externally_accessible;
  }
  [[nodiscard]] bool dispatches(FrontendKind kind) const noexcept {
    return kind == FrontendKind::kClusterIp ? internal_dispatch()
                                            : external_dispatch() && !mode_refuses(kind);
  }
  /// ipip: the endpoints are of the other family, so cluster IPs cannot be translated to them.
  [[nodiscard]] bool crosses_families() const noexcept {
    return !endpoints.empty() && endpoints.front().address.family() != family;
  }
  /// The Service's forwarding mode cannot serve frontends of this kind.
  [[nodiscard]] bool mode_refuses(FrontendKind kind) const noexcept {
    return kind == FrontendKind::kNodePort     ? mode_refuses_node_port
           : kind == FrontendKind::kClusterIp ? false
                                              : mode_refuses_addresses;
  }
  /// External traffic under policy Cluster is masqueraded where it is translated. dr and ipip do
  /// not translate: an adapter that does it for them needs the answers to come back by this node.
  [[nodiscard]] bool marks_external() const noexcept {
    return masquerade_external || mode == ForwardingMode::kFullNat ||
           mode == ForwardingMode::kDr || mode == ForwardingMode::kIpip;
  }
  /// What a frontend of this kind answers when nothing is dispatched (section 9).
  [[nodiscard]] EmptyVerdict when_empty(FrontendKind kind) const noexcept {
    if (has_any && mode_refuses(kind)) {
      return EmptyVerdict::kReject;
    }
    return kind == FrontendKind::kClusterIp ? internal_when_empty : external_when_empty;
  }
  /// N-5: its policy for internal or for external traffic is Local, and endpoints are on other
  /// nodes only.
  [[nodiscard]] bool lacks_local(bool internal) const noexcept {
    const bool asks_for_local =
        internal ? internal_policy == TrafficPolicy::kLocal
                 : externally_accessible && external_policy == TrafficPolicy::kLocal;
    return asks_for_local && has_any && local.empty();
  }
};
inline constexpr std::uint8_t kSchedPort = 1;      ///< mh-port / sh-port
inline constexpr std::uint8_t kSchedFallback = 2;  ///< mh-fallback / sh-fallback

/// A flag by its name, as IPVS has it: each belongs to one scheduler.
struct SchedulerFlag {
  std::string_view name;
  SchedulerKind scheduler;
  std::uint8_t bit;
};
inline constexpr std::array<SchedulerFlag, 4> kSchedulerFlags = {
    {{"mh-port", SchedulerKind::kMh, kSchedPort},
     {"mh-fallback", SchedulerKind::kMh, kSchedFallback},
     {"sh-port", SchedulerKind::kSh, kSchedPort},
     {"sh-fallback", SchedulerKind::kSh, kSchedFallback}}};

struct Frontend {
  ServiceSlot slot = ServiceSlot::kNone;
  FrontendKind kind = FrontendKind::kClusterIp;
  bool operator==(const Frontend&) const = default;
};

/// Section 11 detector of one family, resolved from the configuration.
struct LocalDetector {
  enum class Kind : std::uint8_t { kNone, kCidr, kBridge, kInterfacePrefix };
  Kind kind = Kind::kNone;
  Cidr cidr;
  std::string interface;  ///< bridge name or interface name prefix
  bool operator==(const LocalDetector&) const = default;
};

/// Node-port addresses of one family (section 13).
struct NodePortAddresses {
  bool match_all = false;                ///< NP-5: every local address but loopback
  std::vector<IpAddress> addresses;      ///< sorted; used when !match_all
  bool operator==(const NodePortAddresses&) const = default;
};

/// Everything of the table that belongs to the node and not to one Service. Sorted vectors, so
/// that equal content is equal data.
struct NodePart {
  struct PerFamily {
    LocalDetector detector;
    NodePortAddresses node_ports;
    std::vector<IpAddress> local_addresses;     ///< of the host, without loopback
    std::vector<IpAddress> active_cluster_ips;  ///< P-2, P-7
    std::vector<Cidr> service_cidrs;            ///< P-7
    std::vector<IpAddress> announced;           ///< VIPs and external IPs inside `announce:`
    std::vector<IpAddress> snat_addresses;      ///< own addresses; empty: the node's address
    /// Outer sources of ipip; empty: the address of the port that a packet leaves by.
    std::optional<Cidr> tunnel_sources;
    std::optional<IpAddress> node_ip;           ///< primary address of this family
    bool operator==(const PerFamily&) const = default;

    /// Where node ports are reached (section 13). Sorted.
    [[nodiscard]] const std::vector<IpAddress>& node_port_addresses() const noexcept {
      return node_ports.match_all ? local_addresses : node_ports.addresses;
    }
  };
  PerFamily v4;
  PerFamily v6;
  std::uint16_t snat_first_port = 0;  ///< host order, inclusive
  std::uint16_t snat_last_port = 0;   ///< inclusive
  std::uint32_t mark_bit = 1u << 14;  ///< Q-1
  bool masquerade_all = false;
  std::string node_name;
  std::string zone;
  bool operator==(const NodePart&) const = default;
  [[nodiscard]] const PerFamily& of(Family f) const noexcept {
    return f == Family::kIpv4 ? v4 : v6;
  }
  [[nodiscard]] PerFamily& of(Family f) noexcept { return f == Family::kIpv4 ? v4 : v6; }
};

struct FrontendKey {
  IpAddress address;        ///< ignored (zero of the family) for node ports
  std::uint16_t port = 0;   ///< host order
  Protocol protocol = Protocol::kTcp;
  bool node_port = false;
  bool operator==(const FrontendKey&) const = default;
  auto operator<=>(const FrontendKey&) const = default;

  /// The key of a node port of `family`.
  static FrontendKey of_node_port(Family family, std::uint16_t port, Protocol protocol) noexcept {
    return {family == Family::kIpv4 ? IpAddress{} : IpAddress{Ipv6Address{}}, port, protocol, true};
  }
  /// Well mixed; the high bits choose the shard, the low ones the cell.
  [[nodiscard]] std::uint64_t hash() const noexcept;
};

/// Immutable; built only by TableBuilder::freeze(). Thread: any.
class ForwardingTable {
 public:
  static constexpr std::size_t kPageSize = 256;
  static constexpr std::size_t kShards = 256;
  using BlockPtr = std::shared_ptr<const ServicePort>;
  using Page = std::array<BlockPtr, kPageSize>;
  /// One shard of the frontend index: open addressing, power of two, load <= 1/2.
  struct Shard {
    struct Cell {
      FrontendKey key;
      Frontend value;
    };
    std::vector<Cell> cells;   ///< empty cell: value.slot == kNone
    std::uint32_t used = 0;
  };

  /// Grows with every published table.
  [[nodiscard]] std::uint64_t generation() const noexcept { return generation_; }
  /// Grows only when a destination leaves or is ended (design section 5).
  [[nodiscard]] std::uint32_t epoch() const noexcept { return epoch_; }
  [[nodiscard]] const NodePart& node() const noexcept { return *node_; }

  /// @return nullptr: no such service port. Not the same as a block without endpoints.
  [[nodiscard]] const ServicePort* service(ServiceSlot slot) const noexcept {
    const auto i = static_cast<std::uint32_t>(slot);
    if (i / kPageSize >= pages_.size() || pages_[i / kPageSize] == nullptr) {
      return nullptr;
    }
    return (*pages_[i / kPageSize])[i % kPageSize].get();
  }
  [[nodiscard]] std::optional<Frontend> find_frontend(const FrontendKey& key) const noexcept;
  /// Upper bound of slots in use: iterate [0, slot_limit()) over service().
  [[nodiscard]] std::uint32_t slot_limit() const noexcept {
    return static_cast<std::uint32_t>(pages_.size() * kPageSize);
  }
  /// Calls `visit(key, frontend)` for every frontend, in no order.
  template <class Visit>
  void for_each_frontend(Visit&& visit) const {
    for (const auto& shard : shards_) {
      if (shard == nullptr) {
        continue;
      }
      for (const auto& cell : shard->cells) {
        if (cell.value.slot != ServiceSlot::kNone) {
          visit(cell.key, cell.value);
        }
      }
    }
  }
  /// The page of slots [i * kPageSize, ...), for comparing generations by pointer.
  [[nodiscard]] const Page* page(std::size_t i) const noexcept {
    return i < pages_.size() ? pages_[i].get() : nullptr;
  }
  [[nodiscard]] const Shard* shard(std::size_t i) const noexcept { return shards_[i].get(); }
  [[nodiscard]] const std::shared_ptr<const NodePart>& node_ptr() const noexcept { return node_; }
  [[nodiscard]] std::size_t service_count() const noexcept { return service_count_; }
  [[nodiscard]] std::size_t frontend_count() const noexcept { return frontend_count_; }

 private:
  friend class TableBuilder;
  std::uint64_t generation_ = 0;
  std::uint32_t epoch_ = 0;
  std::shared_ptr<const NodePart> node_ = std::make_shared<NodePart>();
  std::vector<std::shared_ptr<const Page>> pages_;
  std::array<std::shared_ptr<const Shard>, kShards> shards_{};
  std::size_t service_count_ = 0;
  std::size_t frontend_count_ = 0;
};

using TablePtr = std::shared_ptr<const ForwardingTable>;

}  // namespace sluice::core
