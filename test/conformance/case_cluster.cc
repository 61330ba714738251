#include "test/conformance/case_cluster.h"

#include <algorithm>
#include <utility>

#include "dataplane/core/fwd/invariants.h"

namespace sluice::conformance {

CaseCluster::CaseCluster(const Options& options, const Case& c, InForce in_force)
    : case_(c),
      profile_(options.profile),
      on_in_force_(std::move(in_force)),
      ids_({}),
      compiler_(profile_, ids_),
      host_side_(c.node, options.sockets, [this]() -> const compile::Compiled& { return put_in_force(); }) {
  if (!c.steps.empty() && std::holds_alternative<Unsynced>(c.steps.front())) {
    awaited_ = {"services", "endpointSlices"};
  }
}

void CaseCluster::start() {
  model::Delta delta;
  delta.services = case_.services;
  delta.slices = case_.slices;
  set_node(case_.node, delta);
  sync(delta);
}

void CaseCluster::set_node(const NodeSetup& setup, model::Delta& delta) {
  node_ = setup;
  host_side_.set_node(setup);
  host_ = {};
  for (const core::IpAddress& a : setup.host_addresses) {
    host_.addresses.push_back({a, "eth0"});
  }
  if (setup.absent) {
    delta.deleted_nodes.push_back(setup.node.name);
  } else {
    delta.nodes.push_back(setup.node);
  }
  delta.service_cidrs.push_back({"kubernetes", setup.service_cidrs});
}

void CaseCluster::sync(const model::Delta& delta) {
  const model::ChangeSet changes = model::apply(state_, delta);
  if (!awaited_.empty()) {
    return;  // SY-1: only accumulates
  }
  auto compiled = compiler_.update(state_, changes, node_.config, host_);
  if (!compiled) {
    failures_.push_back("compile: " + compiled.error().message);
    return;
  }
  wanted_ = std::move(*compiled);
  if (const auto sound = core::check_table(*wanted_.table); !sound) {
    failures_.push_back("invariant: " + sound.error().message);
  }
  host_side_.sync();
}

/// A run of the sync loop was successful.
const compile::Compiled& CaseCluster::put_in_force() {
  compiled_ = wanted_;
  if (compiled_.table != nullptr) {
    on_in_force_(compiled_);
  }
  return compiled_;
}

void CaseCluster::perform(const Apply& step) {
  model::Delta delta;
  delta.services = step.services;
  delta.slices = step.slices;
  if (step.node) {
    set_node(*step.node, delta);
  }
  sync(delta);
}

void CaseCluster::perform(const Delete& step) {
  model::Delta delta;
  delta.deleted_services = step.services;
  delta.deleted_slices = step.slices;
  sync(delta);
}

void CaseCluster::perform(const Synced& step) {
  awaited_.erase(step.list);
  sync({});
}

core::TablePtr CaseCluster::table_with_local(const core::IpAddress& address) const {
  compile::HostState host = host_;
  host.addresses.push_back({address, "eth0"});
  compile::IdRegistry ids({});
  auto compiled =
      compile::compile_full(state_, node_.config, host, profile_, ids);
  return compiled ? compiled->table : compiled_.table;
}

/// Past the sync loop, which belongs to the case.
void CaseCluster::put_in_force(const model::Delta& delta) {
  const model::ChangeSet changes = model::apply(state_, delta);
  auto compiled = compiler_.update(state_, changes, node_.config, host_);
  if (!compiled) {
    failures_.push_back("compile: " + compiled.error().message);
    return;
  }
  compiled_ = std::move(*compiled);
  on_in_force_(compiled_);
}

void CaseCluster::in_the_past(const core::IpAddress& endpoint, std::uint16_t port,
                              const std::function<void()>& body) {
  model::Delta past;
  model::Delta present;
  for (const auto& [name, service] : state_.services) {
    present.services.push_back(service);
    past.services.push_back(service);
    past.services.back().external_traffic_policy = "Cluster";
    past.services.back().internal_traffic_policy = "Cluster";
    model::EndpointSlice slice;
    slice.name = {name.ns, name.name + "-past"};
    slice.labels["kubernetes.io/service-name"] = name.name;
    slice.address_type = endpoint.is_v4() ? "IPv4" : "IPv6";
    for (const auto& p : service.ports) {
      slice.ports.push_back({p.name, p.protocol, port});
    }
    slice.endpoints.emplace_back().addresses = {core::to_string(endpoint)};
    present.deleted_slices.push_back(slice.name);
    past.slices.push_back(std::move(slice));
  }
  put_in_force(past);
  body();
  put_in_force(present);
}

bool CaseCluster::has_endpoint(const std::string& endpoint) const {
  const auto is_it = [&](const core::Endpoint& e) {
    return core::to_string(e.address, e.port) == endpoint;
  };
  for (std::uint32_t i = 0; compiled_.table != nullptr && i < compiled_.table->slot_limit(); ++i) {
    const auto* block = compiled_.table->service(static_cast<core::ServiceSlot>(i));
    if (block != nullptr && std::any_of(block->endpoints.begin(), block->endpoints.end(), is_it)) {
      return true;
    }
  }
  return false;
}

void CaseCluster::own_also(const std::optional<core::IpAddress>& address) {
  if (compiled_.table == nullptr) {
    return;
  }
  compile::HostState host = host_;
  if (address) {
    host.addresses.push_back({*address, "eth0"});
  }
  auto compiled = compiler_.update(state_, {}, node_.config, host);
  if (!compiled) {
    failures_.push_back("compile: " + compiled.error().message);
    return;
  }
  compiled_ = std::move(*compiled);
  on_in_force_(compiled_);
}

}  // namespace sluice::conformance
