#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "dataplane/core/fwd/invariants.h"
#include "dataplane/core/fwd/table_builder.h"

namespace sluice::core {

inline IpAddress ip(std::string_view text) { return parse_address(text).value_or(IpAddress{}); }

inline Endpoint endpoint(std::string_view address, std::uint32_t id, bool local = false) {
  Endpoint e;
  e.address = ip(address);
  e.port = 8080;
  e.id = EndpointId{id};
  e.local = local;
  return e;
}

/// A cluster-IP block on port 80 with the given endpoints, all of them candidates.
inline ServicePort block(const std::string& name, std::string_view cluster_ip,
                         std::vector<Endpoint> endpoints) {
  ServicePort b;
  b.name = name;
  b.port = 80;
  b.cluster_ip = ip(cluster_ip);
  b.family = b.cluster_ip.family();
  b.endpoints = std::move(endpoints);
  for (std::uint32_t i = 0; i < b.endpoints.size(); ++i) {
    b.cluster.push_back(EndpointIndex{i});
    if (b.endpoints[i].local) {
      b.local.push_back(EndpointIndex{i});
    }
  }
  b.all_reachable = b.cluster;
  b.has_any = !b.cluster.empty();
  b.has_internal = b.has_any;
  b.has_external = b.has_any;
  return b;
}

/// Sets the policies and what follows from them.
inline ServicePort with_policy(ServicePort b, TrafficPolicy internal, TrafficPolicy external) {
  b.internal_policy = internal;
  b.external_policy = external;
  b.has_internal = b.has_any && (internal == TrafficPolicy::kCluster || !b.local.empty());
  b.has_external = b.has_any && (external == TrafficPolicy::kCluster || !b.local.empty());
  const auto verdict = b.has_any ? EmptyVerdict::kDrop : EmptyVerdict::kReject;
  b.internal_when_empty = verdict;
  b.external_when_empty = verdict;
  b.masquerade_external = external == TrafficPolicy::kCluster;
  return b;
}

/// Adds a block with all frontends it claims.
inline void add(TableBuilder& builder, std::uint32_t slot, const ServicePort& b) {
  builder.set_service(ServiceSlot{slot}, b);
  for (const auto& [key, kind] : claimed_frontends(b)) {
    builder.set_frontend(key, {ServiceSlot{slot}, kind});
  }
}

/// The table of freeze(), or an empty pointer.
inline TablePtr frozen(TableBuilder& builder) {
  auto table = builder.freeze();
  return table ? *table : nullptr;
}

}  // namespace sluice::core
