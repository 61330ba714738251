#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/core/fwd/forwarding_table.h"
#include "kni/nftables/ruleset.h"

namespace sluice::kni::nft {

// Theory of operation: the layout
//
// A packet's way through the packet procedure (section 8), by hook:
//   prerouting, output -110  firewall-check          P-1
//   prerouting, output -100  services                P-2..P-5
//   input 0                  nodeport-endpoints-check, service-endpoints-check   P-6
//   forward, output 0        service-endpoints-check, cluster-ips-check          P-6, P-7
//   postrouting 100          masquerading            P-9
//
// `services` looks (daddr . proto . dport) up in service-ips, which names a chain. Chains are made
// per shape, not per Service: c-N picks one of N places and translates by the slot there, if there
// is one (slots.h), by svc-eps (daddr . proto . dport . slot -> addr . port). x-N marks first, o-M
// picks among the local list, l-N-M is an external frontend with policy Local. So a Service is
// elements of a few maps, which a kernel loads and changes in bulk. Node ports have the same
// without daddr (chains n..., nodeport-eps).
// Slots of the cluster list begin at 0, those of the local list at kLocalSlots, so a change
// of one list moves nothing of the other.
//
// Rules and map elements are read at moments that may lie on both sides of a commit. A picked slot
// that is gone then is caught by each pick's last rule, which goes on to the list's first slot.
//
// A Service with session affinity has chains of its own (section 12): first one rule per candidate
// "source remembered there", then a uniform choice; each of them remembers the source under the
// endpoint's number and translates. There are no chains of endpoints: at each commit the kernel
// goes through all chains. All share one set of (source . number), there
// while a Service has affinity: the kernel finds sets by walking their list.
//
// Beside workers (Scope) the same rules see what begins on the host only: processes and pods. What
// comes in by a port's tap was decided by a worker, and masquerading keeps off the workers' ports.

namespace names {
inline constexpr const char* kClusterIps = "cluster-ips";
inline constexpr const char* kNodePortIps = "nodeport-ips";
inline constexpr const char* kServiceIps = "service-ips";
inline constexpr const char* kServiceNodePorts = "service-nodeports";
inline constexpr const char* kServiceEndpoints = "svc-eps";
inline constexpr const char* kNodePortEndpoints = "nodeport-eps";
inline constexpr const char* kEmptyServices = "no-endpoint-services";
inline constexpr const char* kEmptyNodePorts = "no-endpoint-nodeports";
inline constexpr const char* kFirewalled = "firewall-ips";
inline constexpr const char* kAllowed = "firewall-allowed";
inline constexpr const char* kHairpin = "hairpin-connections";
inline constexpr const char* kAffinity = "affinity-sources";
inline constexpr const char* kReject = "reject-chain";
inline constexpr const char* kDrop = "drop-chain";
}  // namespace names

inline constexpr std::uint32_t kLocalSlots = 65536;

/// What the rules are for.
struct Scope {
  /// Beside workers: the begin of their taps' names; empty: the kernel forwards everything.
  std::string taps;
};
/// Sources that endpoints remember: source . number.
[[nodiscard]] SetSpec affinity_set();

/// The containers that every node has, by name.
[[nodiscard]] const std::map<std::string, SetSpec>& node_sets();

/// Base chains, containers and the rules that every node has; no elements but the node's.
[[nodiscard]] Ruleset render_node(const core::NodePart& node, core::Family family,
                                  const Scope& scope = {});

/// Whether rules (and not only elements) follow from what differs between two node parts.
[[nodiscard]] bool rules_differ(const core::NodePart& before, const core::NodePart& after,
                                core::Family family);

/// Elements of the node part: active cluster IPs, node-port addresses.
[[nodiscard]] std::string address_key(const core::IpAddress& address);

/// Rule that a source counts as pod-local, or that it does not. nullopt: no detector.
[[nodiscard]] std::optional<Statement> pod_local(const core::LocalDetector& detector, bool negate);

/// What a shared chain does; N and M are the numbers of places of the cluster and local list.
struct Shape {
  enum class Kind : std::uint8_t {
    kCluster,        ///< c-N: pick from the cluster list
    kLocal,          ///< o-M: pick from the local list
    kMarked,         ///< x-N: mark, then c-N
    kExternalLocal,  ///< l-N-M: P-5 with policy Local
    kVouched,        ///< h-N: policy Cluster, source kept but for host-local ones (mode nat)
    kFullLocal,      ///< f-N-M: as l-N-M, always marked (mode fullnat)
  };
  Kind kind = Kind::kCluster;
  bool node_port = false;
  Pick::Kind pick = Pick::Kind::kRandom;
  std::uint32_t cluster = 0;  ///< N
  std::uint32_t local = 0;    ///< M
  auto operator<=>(const Shape&) const = default;
};

/// Its chain looks an endpoint map up. To bind a rule to a map the kernel walks the whole map, so
/// such a chain stays when it is not used any more (render.h).
[[nodiscard]] bool picks(const Shape& shape);

[[nodiscard]] std::string chain_name(const Shape& shape);
[[nodiscard]] Chain shape_chain(const Shape& shape, const core::NodePart& node,
                                core::Family family);
/// `shape` and those that its chain goes to.
[[nodiscard]] std::vector<Shape> with_needed(const Shape& shape);

}  // namespace sluice::kni::nft
