#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/core/fwd/parallel.h"

namespace sluice::model {

// Facts as Kubernetes writes them: strings stay strings, an absent field stays absent. Nothing is
// interpreted or defaulted here; that is control/compile's work (M-1..SL-10).

/// namespace/name.
struct ObjectName {
  std::string ns;
  std::string name;
  auto operator<=>(const ObjectName&) const = default;
  [[nodiscard]] std::string text() const { return ns + "/" + name; }
};

struct ServicePortSpec {
  std::string name;                     ///< "" when the Service has one unnamed port
  std::string protocol;                 ///< "TCP", "UDP", "SCTP"; "" = TCP (S-14)
  std::int64_t port = 0;
  std::int64_t node_port = 0;
  std::string target_port;              ///< informational: never used on Linux (S-13)
  std::string app_protocol;
  bool operator==(const ServicePortSpec&) const = default;
};

struct LoadBalancerIngress {
  std::string ip;
  std::string hostname;
  std::optional<std::string> ip_mode;   ///< absent = VIP (S-3)
  bool operator==(const LoadBalancerIngress&) const = default;
};

struct Service {
  ObjectName name;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  std::optional<std::int64_t> creation_unix_seconds;  ///< metadata.creationTimestamp
  std::string type;                     ///< "" = ClusterIP
  std::string cluster_ip;               ///< "", "None" or an address
  std::vector<std::string> cluster_ips;
  std::vector<std::string> ip_families; ///< "IPv4", "IPv6"
  std::vector<ServicePortSpec> ports;
  std::vector<std::string> external_ips;
  std::vector<std::string> load_balancer_source_ranges;
  std::vector<LoadBalancerIngress> load_balancer_ingress;  ///< status.loadBalancer.ingress
  std::string external_traffic_policy;  ///< "", "Cluster", "Local"
  std::optional<std::string> internal_traffic_policy;
  std::string session_affinity;         ///< "", "None", "ClientIP"
  std::optional<std::int64_t> affinity_timeout_seconds;
  std::int64_t health_check_node_port = 0;
  std::string traffic_distribution;     ///< only for hints production (section 23)
  // Typed fields of ours; the annotations sluice.dev/... mean the same (design section 4).
  std::string scheduler;
  std::vector<std::string> scheduler_flags;
  std::string forwarding_mode;
  std::map<std::string, std::int64_t> weights;  ///< key: endpoint IP or "ip:port"
  std::optional<std::int64_t> maglev_table_size;
  bool operator==(const Service&) const = default;
};

struct SlicePort {
  std::optional<std::string> name;      ///< absent = nil (SL-5); a missing YAML key means ""
  std::string protocol;                 ///< "" = TCP
  std::optional<std::int64_t> port;     ///< absent = nil
  bool operator==(const SlicePort&) const = default;
};

struct SliceEndpoint {
  std::vector<std::string> addresses;
  std::optional<bool> ready;            ///< tri-states (C-1)
  std::optional<bool> serving;
  std::optional<bool> terminating;
  std::optional<std::string> node_name;
  std::optional<std::string> zone;
  std::vector<std::string> for_zones;   ///< hints.forZones[].name
  std::vector<std::string> for_nodes;   ///< hints.forNodes[].name
  std::optional<std::int64_t> weight;   ///< ours; absent = 1
  bool operator==(const SliceEndpoint&) const = default;
};

struct EndpointSlice {
  ObjectName name;
  std::map<std::string, std::string> labels;  ///< kubernetes.io/service-name is one
  std::map<std::string, std::string> annotations;
  std::string address_type;             ///< "IPv4", "IPv6", "FQDN"
  std::vector<SlicePort> ports;
  std::vector<SliceEndpoint> endpoints;
  bool operator==(const EndpointSlice&) const = default;
};

struct NodeAddress {
  std::string type;                     ///< "InternalIP", "ExternalIP", "Hostname", ...
  std::string address;
  bool operator==(const NodeAddress&) const = default;
};
struct Taint {
  std::string key;
  std::string value;
  std::string effect;
  bool operator==(const Taint&) const = default;
};
struct Node {
  std::string name;
  std::map<std::string, std::string> labels;
  std::vector<NodeAddress> addresses;
  std::vector<std::string> pod_cidrs;
  std::vector<Taint> taints;
  bool deleting = false;                ///< metadata.deletionTimestamp is set
  bool operator==(const Node&) const = default;
};

struct ServiceCidr {
  std::string name;
  std::vector<std::string> cidrs;
  bool operator==(const ServiceCidr&) const = default;
};

/// A full state of the cluster: what ReplaceSnapshot carries. Keyed by name, so that the order of
/// arrival cannot matter.
struct ClusterState {
  std::uint64_t version = 0;            ///< only grows
  std::map<ObjectName, Service> services;
  std::map<ObjectName, EndpointSlice> slices;
  std::map<std::string, Node> nodes;
  std::map<std::string, ServiceCidr> service_cidrs;
  bool operator==(const ClusterState&) const = default;
};

/// Upserts and deletes; the result of Update validation.
struct Delta {
  std::vector<Service> services;
  std::vector<EndpointSlice> slices;
  std::vector<Node> nodes;
  std::vector<ServiceCidr> service_cidrs;
  std::vector<ObjectName> deleted_services;
  std::vector<ObjectName> deleted_slices;
  std::vector<std::string> deleted_nodes;
  std::vector<std::string> deleted_service_cidrs;
};

/// A slice that came, went or changed its owner.
struct SliceMove {
  ObjectName slice;
  std::optional<ObjectName> from;       ///< who owned it before
  auto operator<=>(const SliceMove&) const = default;
};

/// Objects whose stored value really differs after a change: what incremental compile needs.
struct ChangeSet {
  std::vector<ObjectName> services;     ///< sorted, unique
  std::vector<ObjectName> slices;       ///< EndpointSlices; sorted, unique
  std::vector<ObjectName> slice_owners; ///< Services that own or owned one of them; sorted, unique
  std::vector<SliceMove> moved_slices;  ///< in order, unique
  bool nodes = false;
  bool service_cidrs = false;
  [[nodiscard]] bool empty() const {
    return services.empty() && slices.empty() && !nodes && !service_cidrs;
  }
};

/// Applies a delta in place, deletes first. An object equal to the stored one is no change (SL-3);
/// deleting an unknown object is no change. `version` grows by one only if something changed. An
/// object that the delta deletes and upserts counts as changed.
/// Thread: the owner of `state`.
ChangeSet apply(ClusterState& state, const Delta& delta);
/// Makes `state` hold exactly what `next` holds (a relist is a full replace); version as apply(),
/// `next.version` is ignored. Afterwards `next` holds what `state` held.
/// @param parallel  compares parts of large states at once; the result does not depend on it.
ChangeSet exchange(ClusterState& state, ClusterState& next,
                   const core::ParallelFor& parallel = core::one_after_another);

/// The Service a slice belongs to (SL-2); nullopt: ignored.
std::optional<ObjectName> owner_of(const EndpointSlice& slice);

}  // namespace sluice::model
