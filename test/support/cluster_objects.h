#pragma once

#include <string>
#include <vector>

#include "control/model/model.h"

namespace sluice::test {

/// A small valid Service: one TCP port, or as the caller changes it.
inline model::Service make_service(const std::string& name, const std::string& cluster_ip,
                                   std::int64_t port = 80, const std::string& protocol = "TCP") {
  model::Service service;
  service.name = {"default", name};
  service.type = "ClusterIP";
  service.cluster_ip = cluster_ip;
  service.cluster_ips = {cluster_ip};
  service.ip_families = {"IPv4"};
  service.ports = {{"", protocol, port, 0, "", ""}};
  return service;
}

/// The slice of that Service with these IPv4 endpoints.
inline model::EndpointSlice make_slice(const std::string& service, const std::string& suffix,
                                       const std::vector<std::string>& addresses,
                                       std::int64_t port = 8080,
                                       const std::string& protocol = "TCP") {
  model::EndpointSlice slice;
  slice.name = {"default", service + "-" + suffix};
  slice.labels = {{"kubernetes.io/service-name", service}};
  slice.address_type = "IPv4";
  slice.ports = {{"", protocol, port}};
  for (const auto& address : addresses) {
    model::SliceEndpoint endpoint;
    endpoint.addresses = {address};
    endpoint.ready = true;
    slice.endpoints.push_back(std::move(endpoint));
  }
  return slice;
}

inline model::ClusterState make_state(const std::vector<model::Service>& services,
                                      const std::vector<model::EndpointSlice>& slices) {
  model::ClusterState state;
  for (const auto& service : services) {
    state.services.emplace(service.name, service);
  }
  for (const auto& slice : slices) {
    state.slices.emplace(slice.name, slice);
  }
  return state;
}

inline model::Delta upsert(std::vector<model::Service> services,
                           std::vector<model::EndpointSlice> slices = {}) {
  model::Delta delta;
  delta.services = std::move(services);
  delta.slices = std::move(slices);
  return delta;
}

/// "10.244.a.b" for the i-th endpoint.
inline std::string endpoint_address(unsigned i) {
  return "10." + std::to_string(64 + i / 62500) + "." + std::to_string(i / 250 % 250) + "." +
         std::to_string(1 + i % 250);
}

}  // namespace sluice::test
