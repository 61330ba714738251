#include "bench/change_cluster.h"

#include "proto/codec.h"

namespace sluice::bench {
namespace {

constexpr std::size_t kServicesPerPage = 200;
constexpr std::size_t kNamespaces = 50;

std::string dotted(unsigned first, std::size_t n) {
  return std::to_string(first) + "." + std::to_string(n >> 16 & 0xff) + "." +
         std::to_string(n >> 8 & 0xff) + "." + std::to_string(n & 0xff);
}

model::ObjectName name_of(std::size_t i) {
  return {"ns" + std::to_string(i % kNamespaces), "svc" + std::to_string(i)};
}

model::Service service_of(std::size_t i) {
  model::Service s;
  s.name = name_of(i);
  s.type = "LoadBalancer";
  s.cluster_ip = dotted(10, i + 1);
  s.cluster_ips = {s.cluster_ip};
  s.ip_families = {"IPv4"};
  s.ports.push_back({"http", "TCP", 80, 0, "", ""});
  s.load_balancer_ingress.push_back({dotted(12, i + 1), "", std::nullopt});
  s.annotations["sluice.dev/forwarding-mode"] = "nat";  // the frame that leaves names the backend
  return s;
}

}  // namespace

/// Endpoint 0 takes an address of its own block for each revision.
std::string ChangeCluster::address(std::size_t i, std::size_t endpoint) const {
  if (endpoint == 0) {
    return dotted(static_cast<unsigned>(100 + revisions_[i] % 100), i);
  }
  const std::size_t n = i * endpoints_ + endpoint;
  return dotted(static_cast<unsigned>(13 + (n >> 24)), n & 0xffffff);
}

void ChangeCluster::fill_slice(std::size_t i, v1::EndpointSlice& slice) const {
  model::EndpointSlice s;
  s.name = {name_of(i).ns, name_of(i).name + "-a"};
  s.labels["kubernetes.io/service-name"] = name_of(i).name;
  s.address_type = "IPv4";
  s.ports.push_back({"http", "TCP", 8080});
  for (std::size_t e = 0; e < endpoints_; ++e) {
    model::SliceEndpoint endpoint;
    endpoint.addresses = {address(i, e)};
    endpoint.ready = true;
    endpoint.node_name = "node" + std::to_string(e);
    s.endpoints.push_back(std::move(endpoint));
  }
  slice = codec::encode(s);
}

void ChangeCluster::change_all() {
  for (std::size_t& revision : revisions_) {
    ++revision;
  }
}

v1::UpdateRequest ChangeCluster::update_of(std::size_t i) const {
  v1::UpdateRequest request;
  fill_slice(i, *request.mutable_upserts()->add_endpoint_slices());
  return request;
}

std::vector<v1::ReplaceSnapshotRequest> ChangeCluster::snapshot() const {
  std::vector<v1::ReplaceSnapshotRequest> parts(1);
  parts[0].mutable_header();
  for (std::size_t i = 0; i < services(); ++i) {
    if (i % kServicesPerPage == 0) {
      parts.emplace_back();
    }
    v1::Objects& page = *parts.back().mutable_objects();
    *page.add_services() = codec::encode(service_of(i));
    fill_slice(i, *page.add_endpoint_slices());
  }
  parts.emplace_back().mutable_commit()->set_objects(2 * services());
  return parts;
}

Probe ChangeCluster::probe(std::size_t i) const {
  return {*core::parse_address(dotted(12, i + 1)), *core::parse_address(address(i, 0))};
}

}  // namespace sluice::bench
