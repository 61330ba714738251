#include "bench/kernel_cluster.h"

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

namespace sluice::bench {
namespace {

constexpr std::size_t kNodePorts = 2768;  // of the default range
constexpr std::size_t kBlock = 16;        // addresses between the endpoints of two Services

compile::IdRegistry::Limits limits(std::size_t services, std::size_t endpoints) {
  compile::IdRegistry::Limits limits;
  limits.service_ports = static_cast<std::uint32_t>(services + 16);
  limits.endpoints = static_cast<std::uint32_t>(services * (endpoints + 2) + 16);
  return limits;
}

model::ObjectName name_of(std::size_t i, const char* tail) {
  return {"ns" + std::to_string(i % 50), "svc" + std::to_string(i) + tail};
}

}  // namespace

void end_program(const std::string& why) {
  std::fprintf(stderr, "sluice-bench-kernel: %s\n", why.c_str());
  std::exit(1);
}

std::string dotted(std::uint32_t base, std::size_t number) {
  const auto a = base + static_cast<std::uint32_t>(number);
  return std::to_string(a >> 24) + "." + std::to_string(a >> 16 & 0xff) + "." +
         std::to_string(a >> 8 & 0xff) + "." + std::to_string(a & 0xff);
}

KernelCluster::KernelCluster(std::size_t services, std::size_t endpoints, const ClusterKind& kind)
    : endpoints_(endpoints),
      ids_(limits(services, endpoints)),
      compiler_(compile::Profile::kNftables, ids_) {
  config_.node_name = "node";
  config_.cluster_cidrs = {*core::parse_cidr("10.64.0.0/10")};
  host_.addresses = {{*core::parse_address("192.0.2.11"), "eth0"}};
  config_.node_addresses = {*core::parse_address("192.0.2.11")};
  for (std::size_t i = 0; i < services; ++i) {
    add(i, kind);
  }
  take(model::apply(state_, delta_));
}

void KernelCluster::change(std::size_t service, bool more) {
  delta_ = {};
  delta_.slices.push_back(slice(service, endpoints_ + (more ? 1 : 0)));
  take(model::apply(state_, delta_));
}

void KernelCluster::take(const model::ChangeSet& changes) {
  auto compiled = compiler_.update(state_, changes, config_, host_);
  if (!compiled) {
    end_program(compiled.error().message);
  }
  table_ = compiled->table;
}

void KernelCluster::add(std::size_t i, const ClusterKind& kind) {
  model::Service s;
  s.name = name_of(i, "");
  s.type = "ClusterIP";
  s.cluster_ip = dotted(kClusterIps, i);
  s.cluster_ips = {s.cluster_ip};
  s.ip_families = {"IPv4"};
  s.ports.push_back({"dns", "UDP", kServicePort, 0, "", ""});
  if (kind.load_balancer) {
    s.type = "LoadBalancer";
    s.ports[0].node_port = i < kNodePorts ? static_cast<std::int64_t>(30000 + i) : 0;
    s.load_balancer_ingress.push_back({dotted(0xc6120000, i), "", std::nullopt});
  }
  if (kind.affinity_each != 0 && i % kind.affinity_each == 0) {
    s.session_affinity = "ClientIP";
    s.affinity_timeout_seconds = 10800;
  }
  delta_.services.push_back(std::move(s));
  delta_.slices.push_back(slice(i, endpoints_));
}

model::EndpointSlice KernelCluster::slice(std::size_t i, std::size_t endpoints) {
  model::EndpointSlice s;
  s.name = name_of(i, "-a");
  s.labels["kubernetes.io/service-name"] = name_of(i, "").name;
  s.address_type = "IPv4";
  s.ports.push_back({"dns", "UDP", 8080});
  for (std::size_t e = 0; e < endpoints; ++e) {
    model::SliceEndpoint endpoint;
    endpoint.addresses = {dotted(kEndpoints, i * kBlock + e)};
    endpoint.ready = true;
    s.endpoints.push_back(std::move(endpoint));
  }
  return s;
}

}  // namespace sluice::bench
