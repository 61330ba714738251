#include "dataplane/pipeline/worker_tables.h"

#include <algorithm>

namespace sluice::pipeline {
namespace {

bool sorted_contains(const std::vector<core::IpAddress>& sorted,
                     const core::IpAddress& a) noexcept {
  return std::binary_search(sorted.begin(), sorted.end(), a);
}

bool contains(const std::vector<core::IpAddress>& list, const core::IpAddress& a) noexcept {
  return std::find(list.begin(), list.end(), a) != list.end();
}

}  // namespace

const Announced* find_announced(const WorkerTables& tables,
                                const core::IpAddress& address) noexcept {
  const auto& list = *tables.announced;
  const auto at =
      std::lower_bound(list.begin(), list.end(), address,
                       [](const Announced& a, const core::IpAddress& b) { return a.address < b; });
  return at != list.end() && at->address == address ? &*at : nullptr;
}

const core::IpAddress* own_address(const WorkerTables& tables, PortIndex port,
                                   core::Family family) noexcept {
  for (const core::IpAddress& address : tables.port(port).addresses) {
    const bool link_local =
        !address.is_v4() && address.data()[0] == 0xfe && (address.data()[1] & 0xc0) == 0x80;
    if (address.family() == family && !link_local) {
      return &address;
    }
  }
  const auto& node_ip = tables.table->node().of(family).node_ip;
  return node_ip.has_value() ? &*node_ip : nullptr;
}

bool is_host_address(const WorkerTables& tables, const core::IpAddress& address) noexcept {
  for (const PortInfo& port : *tables.ports) {
    if (port.present && contains(port.addresses, address)) {
      return true;
    }
  }
  return contains(tables.table->node().of(address.family()).local_addresses, address);
}

const Route* route_of(const WorkerTables& tables, const core::IpAddress& address) noexcept {
  if (is_host_address(tables, address)) {
    return nullptr;
  }
  const Route* route = tables.routes->find(address);
  return route == nullptr || route->port == PortIndex::kNone ? nullptr : route;
}

std::optional<core::Frontend> exact_frontend(const core::ForwardingTable& table,
                                             const L4Address& to) noexcept {
  core::FrontendKey key;
  key.address = to.address;
  key.port = to.port;
  key.protocol = to.protocol;
  return table.find_frontend(key);
}

namespace {

std::optional<core::Frontend> node_port(const core::ForwardingTable& table,
                                        const L4Address& to) noexcept {
  if (!sorted_contains(table.node().of(to.address.family()).node_port_addresses(), to.address)) {
    return std::nullopt;
  }
  return table.find_frontend(
      core::FrontendKey::of_node_port(to.address.family(), to.port, to.protocol));
}

}  // namespace

bool is_node_port(const core::ForwardingTable& table, const L4Address& to) noexcept {
  return node_port(table, to).has_value();
}

const core::ServicePort* service_of_frontend(const core::ForwardingTable& table,
                                             const core::IpAddress& address, std::uint16_t port,
                                             core::Protocol protocol) noexcept {
  const L4Address to{address, port, protocol};
  const auto exact = exact_frontend(table, to);
  const auto found = exact ? exact : node_port(table, to);
  return found.has_value() ? table.service(found->slot) : nullptr;
}

bool any_serving(const core::ServicePort& service) noexcept {
  return std::any_of(service.endpoints.begin(), service.endpoints.end(),
                     [](const core::Endpoint& e) { return e.serving; });
}

}  // namespace sluice::pipeline
