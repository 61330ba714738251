// Health-check node ports: rules H-1..H-6, NP-7 (sections 13 and 14.1).
#include "control/http/service_health.h"

#include "control/http/health_pages.h"

namespace sluice::http {
namespace {

std::vector<core::IpAddress> binds_of(const core::NodePortAddresses& ports, core::Family family) {
  if (ports.match_all) {
    return {family == core::Family::kIpv4 ? core::IpAddress{}
                                          : core::IpAddress{core::Ipv6Address{}}};
  }
  return ports.addresses;
}

}  // namespace

NodePortBinds node_port_binds(const core::NodePart& node) {
  return {binds_of(node.v4.node_ports, core::Family::kIpv4),
          binds_of(node.v6.node_ports, core::Family::kIpv6)};
}

ServiceHealth::ServiceHealth(HttpServer& server, NodePortBinds binds, std::function<bool()> healthy)
    : server_(server), binds_(std::move(binds)), healthy_(std::move(healthy)) {}

ServiceHealth::~ServiceHealth() {
  for (const auto& [key, port] : open_) {
    close(port);
  }
}

void ServiceHealth::close(const Open& port) {
  for (const HttpServer::ListenerId id : port.listeners) {
    server_.close(id);
  }
}

core::Result<ServiceHealth::Open> ServiceHealth::open(const compile::HealthPort& wanted) {
  Open out{wanted.port, std::make_shared<std::atomic<std::uint32_t>>(wanted.local_endpoints), {}};
  // Holds all it needs: an answer may be on its way while the listener is closed.
  const auto page = [healthy = healthy_, service = wanted.service,
                     count = out.local_endpoints](const Request&) {
    return service_page(service, count->load(std::memory_order_relaxed), healthy());
  };
  for (const core::IpAddress& address :
       wanted.family == core::Family::kIpv4 ? binds_.v4 : binds_.v6) {
    const auto listener = server_.listen(address, wanted.port, page);
    if (!listener) {
      close(out);  // all addresses or none, so that the next sync tries all again
      return tl::unexpected(listener.error());
    }
    out.listeners.push_back(listener->id);
  }
  return out;
}

std::vector<BindFailure> ServiceHealth::reconcile(const std::vector<compile::HealthPort>& wanted) {
  std::map<Key, const compile::HealthPort*> by_key;
  for (const compile::HealthPort& port : wanted) {
    by_key[{port.service, port.family}] = &port;
  }
  // First close, so that a port may go from one Service to another in one sync.
  std::erase_if(open_, [&](const auto& item) {
    const auto at = by_key.find(item.first);
    const bool gone = at == by_key.end() || at->second->port != item.second.port;
    if (gone) {
      close(item.second);
    }
    return gone;
  });
  std::vector<BindFailure> failures;
  for (const auto& [key, port] : by_key) {
    if (const auto at = open_.find(key); at != open_.end()) {
      at->second.local_endpoints->store(port->local_endpoints, std::memory_order_relaxed);
      continue;
    }
    auto opened = open(*port);
    if (opened) {
      open_.emplace(key, std::move(*opened));
    } else {
      failures.push_back({port->service, port->family, port->port, opened.error().message});
    }
  }
  return failures;
}

}  // namespace sluice::http
