#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "control/compile/compile.h"
#include "control/compile/compiler.h"
#include "control/compile/id_registry.h"
#include "dataplane/core/fwd/table_builder.h"
#include "test/support/cluster_objects.h"

namespace sluice::kni::test {

/// Compiles states one after the other, as a daemon does.
class TableSource {
 public:
  TableSource() {
    config.node_name = "kestrel";
    config.cluster_cidrs = {*core::parse_cidr("10.42.0.0/16"), *core::parse_cidr("fd42::/16")};
    config.node_port_addresses = {"primary"};
    model::Node node;
    node.name = "kestrel";
    node.addresses = {{"InternalIP", "192.0.2.11"}, {"InternalIP", "2001:db8::11"}};
    state.nodes[node.name] = node;
    state.service_cidrs["kubernetes"] = {"kubernetes", {"10.43.0.0/16", "fd43::/112"}};
    for (const char* text : {"192.0.2.11", "2001:db8::11"}) {
      host.addresses.push_back({*core::parse_address(text), "eth0"});
    }
  }

  compile::Profile profile = compile::Profile::kNftables;
  compile::NodeConfig config;
  compile::HostState host;
  model::ClusterState state;

  void put(const model::Service& service) { state.services[service.name] = service; }
  void put(const model::EndpointSlice& slice) { state.slices[slice.name] = slice; }

  core::TablePtr make() {
    auto compiled =
        compile::compile_full(state, config, host, profile, ids_, last_);
    if (!compiled) {
      throw std::runtime_error(compiled.error().message);
    }
    last_ = compiled->table;
    return last_;
  }

 private:
  compile::IdRegistry ids_{{}};
  core::TablePtr last_;
};

/// Endpoints of the slice that run on this node.
inline model::EndpointSlice on_node(model::EndpointSlice slice, std::size_t first, std::size_t n) {
  for (std::size_t i = first; i < first + n; ++i) {
    slice.endpoints[i].node_name = "kestrel";
  }
  return slice;
}

/// The table with one Service port's printed name changed, past what the compiler takes.
inline core::TablePtr with_name(const core::TablePtr& table, const std::string& name,
                                const std::string& other) {
  core::TableBuilder builder(table);
  for (std::uint32_t i = 0; i < table->slot_limit(); ++i) {
    const auto slot = static_cast<core::ServiceSlot>(i);
    if (table->service(slot) != nullptr && table->service(slot)->name == name) {
      core::ServicePort block = *table->service(slot);
      block.name = other;
      builder.set_service(slot, std::move(block));
    }
  }
  auto made = builder.freeze();
  if (!made) {
    throw std::runtime_error(made.error().message);
  }
  return *made;
}

/// A cluster with a Service of each kind.
inline void fill_small_cluster(TableSource& source) {
  model::Service web = sluice::test::make_service("web", "10.43.0.10");
  web.type = "LoadBalancer";
  web.ports[0].node_port = 30080;
  web.load_balancer_ingress = {{"203.0.113.10", "", std::nullopt}};
  web.load_balancer_source_ranges = {"198.51.100.0/24", "198.51.100.128/25", "192.0.2.0/24"};
  source.put(web);
  source.put(on_node(
      sluice::test::make_slice("web", "a", {"10.42.1.10", "10.42.2.10", "10.42.3.10"}), 0, 1));

  model::Service near = sluice::test::make_service("near", "10.43.0.11");
  near.type = "NodePort";
  near.ports[0].node_port = 30081;
  near.external_traffic_policy = "Local";
  near.internal_traffic_policy = "Local";
  near.external_ips = {"203.0.113.11"};
  source.put(near);
  source.put(on_node(sluice::test::make_slice("near", "a", {"10.42.1.11", "10.42.2.11"}), 0, 1));

  model::Service far = sluice::test::make_service("far", "10.43.0.12", 53, "UDP");
  far.type = "NodePort";
  far.ports[0].node_port = 30053;
  far.external_traffic_policy = "Local";
  source.put(far);
  source.put(sluice::test::make_slice("far", "a", {"10.42.2.12"}, 5353, "UDP"));

  model::Service sticky = sluice::test::make_service("sticky", "10.43.0.13");
  sticky.session_affinity = "ClientIP";
  sticky.affinity_timeout_seconds = 60;
  sticky.type = "NodePort";
  sticky.ports[0].name = "http";
  sticky.ports[0].node_port = 30083;
  source.put(sticky);
  model::EndpointSlice slice =
      sluice::test::make_slice("sticky", "a", {"10.42.1.13", "10.42.2.13"});
  slice.ports[0].name = "http";
  source.put(on_node(slice, 0, 1));

  model::Service none = sluice::test::make_service("none", "10.43.0.14");
  none.type = "NodePort";
  none.ports[0].node_port = 30084;
  source.put(none);

  model::Service six = sluice::test::make_service("six", "fd43::15");
  six.ip_families = {"IPv6"};
  six.external_ips = {"2001:db8:99::15"};
  source.put(six);
  model::EndpointSlice six_slice =
      sluice::test::make_slice("six", "a", {"fd42:1::15", "fd42:2::15"});
  six_slice.address_type = "IPv6";
  source.put(on_node(six_slice, 0, 1));
}

/// `count` Services with so many endpoints each, named many-<number> from `first` on.
inline void add_many(TableSource& source, int first, int count, int endpoints) {
  const auto at = [](const std::string& begin, int i) {
    return begin + std::to_string(i / 200) + "." + std::to_string(i % 200 + 1);
  };
  for (int i = first; i < first + count; ++i) {
    const std::string name = "many-" + std::to_string(i);
    source.put(sluice::test::make_service(name, at("10.44.", i)));
    std::vector<std::string> addresses;
    for (int k = 1; k <= endpoints; ++k) {
      addresses.push_back(at("10." + std::to_string(100 + k) + ".", i));
    }
    source.put(sluice::test::make_slice(name, "a", addresses));
  }
}

/// Beside "sticky" of the small cluster "other", with affinity and the same endpoints.
inline void add_second_sticky(TableSource& source) {
  model::Service other = source.state.services[{"default", "sticky"}];
  other.name.name = "other";
  other.cluster_ip = "10.43.0.20";
  other.cluster_ips = {"10.43.0.20"};
  other.ports[0].node_port = 30090;
  source.put(other);
  model::EndpointSlice slice = source.state.slices[{"default", "sticky-a"}];
  slice.name.name = "other-a";
  slice.labels["kubernetes.io/service-name"] = "other";
  source.put(slice);
}

}  // namespace sluice::kni::test
