#include "test/support/table_maker.h"

#include <algorithm>
#include <stdexcept>

#include "dataplane/core/fwd/invariants.h"
#include "dataplane/core/fwd/table_builder.h"

namespace sluice::test {
namespace {

core::Endpoint parse_endpoint(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  std::string host = text.substr(0, colon);
  if (host.front() == '[') {
    host = host.substr(1, host.size() - 2);
  }
  core::Endpoint e;
  e.address = core::parse_address(host).value();
  e.port = static_cast<std::uint16_t>(std::stoi(text.substr(colon + 1)));
  return e;
}

bool listed(const std::vector<std::string>& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

}  // namespace

TableMaker::TableMaker() {
  node.node_name = "n1";
  node.v4.local_addresses = {*core::parse_address("192.0.2.11")};
  node.v4.node_ports.addresses = {*core::parse_address("192.0.2.11")};
  node.v4.node_ip = core::parse_address("192.0.2.11");
  node.v6.local_addresses = {*core::parse_address("fd00:11::11")};
  node.v6.node_ports.addresses = {*core::parse_address("fd00:11::11")};
  node.v6.node_ip = core::parse_address("fd00:11::11");
  node.snat_first_port = 40960;
  node.snat_last_port = 65535;
}

core::ServicePort TableMaker::block(const std::string& name, const TestService& s) {
  core::ServicePort b;
  b.name = name;
  b.cluster_ip = core::parse_address(s.cluster_ip).value();
  b.family = b.cluster_ip.family();
  b.protocol = s.protocol;
  b.port = s.port;
  b.node_port = s.node_port;
  b.scheduler = s.scheduler;
  b.scheduler_flags = s.scheduler_flags;
  b.affinity_seconds = s.affinity_seconds;
  b.mode = s.masquerade_external ? core::ForwardingMode::kByRule : s.mode;
  b.masquerade_external = s.masquerade_external;
  if (!s.vip.empty()) {
    b.load_balancer_vips = {core::parse_address(s.vip).value()};
  }
  b.externally_accessible = !s.vip.empty() || s.node_port != 0;
  for (const std::string& source : s.sources) {
    b.allowed_sources.push_back(core::parse_cidr(source).value());
  }
  std::vector<std::string> sorted = s.endpoints;
  std::sort(sorted.begin(), sorted.end());
  std::vector<core::EndpointIndex> fallback;
  for (const std::string& text : sorted) {
    core::Endpoint e = parse_endpoint(text);
    const auto id = ids_.try_emplace(name + " " + text, static_cast<core::EndpointId>(ids_.size()));
    e.id = id.first->second;
    e.terminating = listed(s.terminating, text);
    e.serving = !listed(s.not_serving, text);
    e.local = listed(s.local, text);
    e.ready = !e.terminating && e.serving;
    if (const auto weight = s.weights.find(text); weight != s.weights.end()) {
      e.weight = weight->second;
    }
    const auto index = static_cast<core::EndpointIndex>(b.endpoints.size());
    if (e.weight == 0) {
      // no candidate
    } else if (e.ready) {
      b.cluster.push_back(index);
    } else if (e.serving && e.terminating) {
      fallback.push_back(index);
    }
    b.endpoints.push_back(e);
  }
  if (b.cluster.empty()) {
    b.cluster = fallback;
  }
  b.all_reachable = b.cluster;
  b.has_any = b.has_external = !b.cluster.empty();
  b.has_internal = b.has_any && !b.crosses_families();
  return b;
}

core::TablePtr TableMaker::make() {
  core::TableBuilder builder(last_);
  core::NodePart part = node;
  std::map<std::string, std::vector<core::FrontendKey>> frontends;
  for (const auto& [name, service] : services) {
    if (!slots_.contains(name)) {
      slots_[name] = static_cast<core::ServiceSlot>(next_slot_++);
    }
    const core::ServiceSlot slot = slots_[name];
    const core::ServicePort b = block(name, service);
    builder.set_service(slot, b);
    for (const auto& [key, kind] : core::claimed_frontends(b)) {
      builder.set_frontend(key, {slot, kind});
      frontends[name].push_back(key);
    }
    auto& family = part.of(b.family);
    family.active_cluster_ips.push_back(b.cluster_ip);
    if (announce_vips) {
      family.announced.insert(family.announced.end(), b.load_balancer_vips.begin(),
                              b.load_balancer_vips.end());
    }
  }
  for (const auto& [name, keys] : frontends_) {
    const std::vector<core::FrontendKey> now =
        frontends.contains(name) ? frontends.at(name) : std::vector<core::FrontendKey>{};
    for (const core::FrontendKey& key : keys) {
      if (std::find(now.begin(), now.end(), key) == now.end()) {
        builder.remove_frontend(key);
      }
    }
    if (!services.contains(name)) {
      builder.remove_service(slots_.at(name));
      slots_.erase(name);
    }
  }
  for (auto* family : {&part.v4, &part.v6}) {
    for (auto* list : {&family->active_cluster_ips, &family->announced}) {
      std::sort(list->begin(), list->end());
      list->erase(std::unique(list->begin(), list->end()), list->end());
    }
  }
  builder.set_node(part);
  auto table = builder.freeze();
  if (!table) {
    throw std::logic_error(table.error().message);
  }
  frontends_ = std::move(frontends);
  last_ = *table;
  return last_;
}

core::EndpointId TableMaker::id(const std::string& service, const std::string& endpoint) const {
  return ids_.at(service + " " + endpoint);
}

core::ServiceSlot TableMaker::slot(const std::string& service) const {
  return slots_.at(service);
}

}  // namespace sluice::test
