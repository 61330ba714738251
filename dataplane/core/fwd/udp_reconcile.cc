// Stale UDP flows: rules CT-1..CT-4, CT-6 (section 16.1).
#include "dataplane/core/fwd/udp_reconcile.h"

#include <algorithm>
#include <set>
#include <string_view>

namespace sluice::core {
namespace {

/// "ns/name" of the printed name "ns/name" or "ns/name:port" (M-3).
std::string_view service_of(std::string_view printed) {
  return printed.substr(0, printed.find(':'));
}

void add_udp_services(const ForwardingTable& table, std::set<std::string_view>& out) {
  for (std::uint32_t i = 0; i < table.slot_limit(); ++i) {
    const ServicePort* s = table.service(static_cast<ServiceSlot>(i));
    if (s != nullptr && s->protocol == Protocol::kUdp) {
      out.insert(service_of(s->name));
    }
  }
}

bool forbids(const ForwardingTable& table, const FrontendKey& key, const UdpFlow& flow) noexcept {
  const auto frontend = table.find_frontend(key);
  const ServicePort* s = frontend ? table.service(frontend->slot) : nullptr;
  if (s == nullptr || std::none_of(s->endpoints.begin(), s->endpoints.end(),
                                   [](const Endpoint& e) { return e.serving; })) {
    return false;
  }
  const Endpoint* backend = s->find_endpoint(flow.reply_source, flow.reply_source_port);
  return backend == nullptr || !backend->serving;
}

}  // namespace

bool udp_endpoints_changed(const ForwardingTable* before, const ForwardingTable& after) {
  if (before == nullptr) {
    return false;
  }
  std::set<std::string_view> changed;
  for (std::uint32_t i = 0; i < after.slot_limit(); ++i) {
    const ServicePort* now = after.service(static_cast<ServiceSlot>(i));
    const ServicePort* then = before->service(static_cast<ServiceSlot>(i));
    // Equal pointers are equal blocks: generations share what did not change. A block that came or
    // went is a change of the Service.
    if (now != then && now != nullptr && then != nullptr && now->name == then->name &&
        now->endpoints != then->endpoints) {
      changed.insert(service_of(now->name));
    }
  }
  if (changed.empty()) {
    return false;
  }
  std::set<std::string_view> udp;
  add_udp_services(*before, udp);
  add_udp_services(after, udp);
  return std::any_of(changed.begin(), changed.end(),
                     [&](std::string_view name) { return udp.contains(name); });
}

bool is_stale(const ForwardingTable& table, const UdpFlow& flow) noexcept {
  const FrontendKey address{flow.destination, flow.destination_port, Protocol::kUdp, false};
  // The node-port test looks at the number only, whatever the destination address is (CT-3).
  return forbids(table, address, flow) ||
         forbids(table,
                 FrontendKey::of_node_port(flow.destination.family(), flow.destination_port,
                                           Protocol::kUdp),
                 flow);
}

std::vector<std::size_t> stale_udp_flows(const ForwardingTable& table,
                                         std::span<const UdpFlow> flows) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < flows.size(); ++i) {
    if (is_stale(table, flows[i])) {
      out.push_back(i);
    }
  }
  return out;
}

}  // namespace sluice::core
