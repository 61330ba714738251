#include "dataplane/pipeline/view_publisher.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "dataplane/core/fwd/invariants.h"
#include "dataplane/core/fwd/table_builder.h"

namespace sluice::pipeline {
namespace {

using core::ForwardingTable;
using core::ServicePort;

// A table that comes pays for a few of those that left before it; collect() looks at all.
constexpr std::size_t kDrainingLooks = 64;
// Addresses that come into the book at once: so many that memory is waited for together, so few
// that they stay in the cache.
constexpr std::size_t kComeTogether = 1024;

/// Every (address, port) that leads to a block.
std::vector<L4Address> frontends_of(const ServicePort& block, const core::NodePart& node) {
  std::vector<L4Address> all;
  core::for_each_claim(block, [&](const core::FrontendKey& key, core::FrontendKind) {
    if (!key.node_port) {
      all.push_back({key.address, key.port, key.protocol});
      return;
    }
    for (const core::IpAddress& a : node.of(block.family).node_port_addresses()) {
      all.push_back({a, key.port, key.protocol});
    }
  });
  return all;
}

/// Neither its addresses nor its ports are other ones.
bool same_frontends(const ServicePort& a, const ServicePort& b) {
  return a.cluster_ip == b.cluster_ip && a.load_balancer_vips == b.load_balancer_vips &&
         a.external_ips == b.external_ips && a.port == b.port && a.node_port == b.node_port &&
         a.health_check_node_port == b.health_check_node_port && a.protocol == b.protocol;
}

/// In `block`, what `other` has at place i; most often it is at the same place.
const core::Endpoint* find_endpoint(const ServicePort& block, const ServicePort& other,
                                    std::size_t i) {
  const core::Endpoint& e = other.endpoints[i];
  if (i < block.endpoints.size() && block.endpoints[i].port == e.port &&
      block.endpoints[i].address == e.address) {
    return &block.endpoints[i];
  }
  return block.find_endpoint(e.address, e.port);
}

L4Address backend_of(const ServicePort& block, const core::Endpoint& e) {
  return {e.address, e.port, block.protocol};
}

/// Those that are nobody else's (SteeringBook::is_service_address).
template <class Take>
void for_each_own_address(const ServicePort& block, Take&& take) {
  if (!block.cluster_ip.is_unspecified()) {
    take(SteeringBook::whole_address(block.cluster_ip));
  }
  for (const core::IpAddress& vip : block.load_balancer_vips) {
    take(SteeringBook::whole_address(vip));
  }
}

std::size_t count_endpoints(const ForwardingTable& table) {
  std::size_t all = 0;
  for (std::uint32_t i = 0; i < table.slot_limit(); ++i) {
    const ServicePort* block = table.service(static_cast<core::ServiceSlot>(i));
    all += block == nullptr ? 0 : block->endpoints.size();
  }
  return all;
}

std::vector<core::EndpointId> without_duplicates(std::vector<core::EndpointId> ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

}  // namespace

ViewPublisher::ViewPublisher(std::size_t workers, const ConnectionCounts& counts)
    : workers_(workers), counts_(counts), cell_(workers) {
  next_.book = std::make_shared<const SteeringBook>();
  next_.routes = std::make_shared<const RouteTable>();
  next_.ports = std::make_shared<const PortInfos>();
  next_.announced = std::make_shared<const std::vector<Announced>>();
  next_.excluded = std::make_shared<const core::PortSet>();
  next_.source_pool = std::make_shared<const SourcePool>(workers);
  next_.departures = std::make_shared<const Departures>();
}

void ViewPublisher::apply(core::TablePtr table) {
  const ForwardingTable& after = *table;
  take_over_services(after);
  take_over_node_addresses(after);
  update_announced(after);
  update_excluded();
  update_source_pool(after);
  if (next_.table == nullptr || !left_.empty()) {
    ++next_.epoch;
    auto departures = std::make_shared<Departures>(*next_.departures);
    for (const auto& [slot, endpoint] : left_) {
      departures->note(slot, endpoint, next_.epoch);
    }
    next_.departures = std::move(departures);
  }
  next_.table = std::move(table);
  drop_drained(kDrainingLooks);
  freeze_book();
  publish();
}

void ViewPublisher::set_routes(RouteTable routes) {
  next_.routes = std::make_shared<const RouteTable>(std::move(routes));
  concern_all();
  publish();
}

void ViewPublisher::concern_all() {
  ++next_.epoch;
  auto departures = std::make_shared<Departures>(*next_.departures);
  departures->note_all(next_.epoch);
  next_.departures = std::move(departures);
}

std::uint64_t ViewPublisher::renew_epoch() {
  concern_all();
  publish();
  return next_.sequence;
}

void ViewPublisher::set_ports(std::vector<PortInfo> ports) {
  auto infos = std::make_shared<PortInfos>();
  for (std::size_t p = 0; p < ports.size() && p < kMaxPorts; ++p) {
    (*infos)[p] = std::move(ports[p]);
  }
  if (*infos == *next_.ports) {
    return;
  }
  next_.ports = std::move(infos);
  publish();
}

void ViewPublisher::set_reserved_ports(std::vector<std::uint16_t> ports) {
  for (const std::uint16_t port : ports) {
    reserve_port(port, true);
  }
  for (const std::uint16_t port : reserved_) {
    reserve_port(port, false);
  }
  reserved_ = std::move(ports);
  if (ports_changed_) {
    update_excluded();
    publish();
  }
}

std::size_t ViewPublisher::collect() {
  if (next_.table != nullptr && drop_drained(draining_slots_.size())) {
    freeze_book();
    publish();
  }
  return cell_.collect();
}

void ViewPublisher::take_over_services(const ForwardingTable& next) {
  const ForwardingTable* before = next_.table.get();
  const std::uint32_t limit =
      std::max(next.slot_limit(), before == nullptr ? 0u : before->slot_limit());
  left_.clear();
  if (before == nullptr || next.service_count() > 2 * before->service_count()) {
    backends_.make_room(count_endpoints(next));
    own_.make_room(next.frontend_count());
  }
  for (std::uint32_t i = 0; i < limit; ++i) {
    const std::size_t page = i / ForwardingTable::kPageSize;
    if (i % ForwardingTable::kPageSize == 0 && before != nullptr &&
        before->page(page) == next.page(page)) {
      i += ForwardingTable::kPageSize - 1;  // shared: nothing changed in it
      continue;
    }
    const auto slot = static_cast<core::ServiceSlot>(i);
    const ServicePort* old_block = before == nullptr ? nullptr : before->service(slot);
    const ServicePort* new_block = next.service(slot);
    if (old_block != new_block) {
      replace_block(slot, old_block, new_block, next);
    }
    if (new_backends_.size() >= kComeTogether || new_own_.size() >= kComeTogether) {
      take_new_addresses();
    }
  }
  take_new_addresses();
}

void ViewPublisher::take_new_addresses() {
  backends_.add_all(new_backends_);
  new_backends_.clear();
  own_.add_all(new_own_);
  new_own_.clear();
}

void ViewPublisher::add_backends_of(const ServicePort* before, const ServicePort& after) {
  for (std::size_t i = 0; i < after.endpoints.size(); ++i) {
    if (before == nullptr || find_endpoint(*before, after, i) == nullptr) {
      new_backends_.push_back(backend_of(after, after.endpoints[i]));
    }
  }
}

void ViewPublisher::replace_block(core::ServiceSlot slot, const ServicePort* before,
                                  const ServicePort* after, const ForwardingTable& next) {
  const bool same_node = next_.table != nullptr && next_.table->node_ptr() == next.node_ptr();
  const bool same =
      same_node && before != nullptr && after != nullptr && same_frontends(*before, *after);
  if (after != nullptr) {
    add_backends_of(before, *after);
  }
  if (after != nullptr && !same) {
    reserve_ports_of(*after, true);
    for_each_own_address(*after, [&](const L4Address& own) { new_own_.push_back(own); });
  }
  if (before == nullptr) {
    return;
  }
  Draining left;
  left.slot = slot;
  const bool udp = before->protocol == core::Protocol::kUdp;
  const std::size_t left_before = left_.size();
  for (std::size_t i = 0; i < before->endpoints.size(); ++i) {
    const core::Endpoint& was = before->endpoints[i];
    const core::Endpoint* now = after == nullptr ? nullptr : find_endpoint(*after, *before, i);
    // Other flows keep their backend whatever becomes of it (M-8).
    if (udp && (core::endpoint_left(was, now, before->protocol) || now->id != was.id)) {
      left_.emplace_back(slot, was.id);
    }
    if (now == nullptr) {
      // It keeps its place in the book until its connections are gone.
      left.backends.push_back(backend_of(*before, was));
      left.endpoints.push_back(was.id);
    }
  }
  if (udp && left_.size() > left_before) {
    note_not_serving(slot, *before);
  }
  if (!same) {
    reserve_ports_of(*before, false);
    for_each_own_address(*before, [&](const L4Address& own) { own_.remove(own); });
    note_departed_frontends(*before, after, next, left);
  }
  if (!left.backends.empty() || !left.frontends.empty()) {
    left.left_at = next_.sequence + 1;
    start_draining(std::move(left));
  }
}

/// CT-3: when something leaves, flows to endpoints that are ready but do not serve move as well.
void ViewPublisher::note_not_serving(core::ServiceSlot slot, const ServicePort& block) {
  for (const core::Endpoint& e : block.endpoints) {
    if (!e.serving) {
      left_.emplace_back(slot, e.id);
    }
  }
}

void ViewPublisher::note_departed_frontends(const ServicePort& before, const ServicePort* after,
                                            const ForwardingTable& next, Draining& left) {
  const auto old_frontends = frontends_of(before, next_.table->node());
  const auto new_frontends =
      after == nullptr ? std::vector<L4Address>{} : frontends_of(*after, next.node());
  for (const L4Address& f : old_frontends) {
    if (std::find(new_frontends.begin(), new_frontends.end(), f) == new_frontends.end()) {
      left.frontends.push_back(f);
      departed_.add(f);
    }
  }
  if (!left.frontends.empty()) {
    left.endpoints = endpoints_ever(left.slot, before);
  }
}

/// Node ports lead on for flows to an address that is the node's no more, also those of Services
/// that did not change. (Those that did: replace_block().)
void ViewPublisher::take_over_node_addresses(const ForwardingTable& next) {
  const ForwardingTable* before = next_.table.get();
  if (before == nullptr || before->node_ptr() == next.node_ptr()) {
    return;
  }
  std::vector<core::IpAddress> left;
  for (const core::Family family : {core::Family::kIpv4, core::Family::kIpv6}) {
    const auto& now = next.node().of(family).node_port_addresses();
    for (const core::IpAddress& a : before->node().of(family).node_port_addresses()) {
      if (std::find(now.begin(), now.end(), a) == now.end()) {
        left.push_back(a);
      }
    }
  }
  for (std::uint32_t i = 0; i < before->slot_limit() && !left.empty(); ++i) {
    const auto slot = static_cast<core::ServiceSlot>(i);
    const ServicePort* block = before->service(slot);
    if (block != nullptr && block->node_port != 0 && block == next.service(slot)) {
      drain_node_port(slot, *block, left);
    }
  }
}

void ViewPublisher::drain_node_port(core::ServiceSlot slot, const ServicePort& block,
                                    const std::vector<core::IpAddress>& addresses) {
  Draining left;
  left.slot = slot;
  for (const core::IpAddress& a : addresses) {
    if (a.family() == block.family) {
      left.frontends.push_back({a, block.node_port, block.protocol});
      departed_.add(left.frontends.back());
    }
  }
  if (!left.frontends.empty()) {
    left.endpoints = endpoints_ever(slot, block);
    left.left_at = next_.sequence + 1;
    start_draining(std::move(left));
  }
}

/// The same thing that left, came back and left again while its connections live takes one place,
/// however often it does so.
void ViewPublisher::start_draining(Draining left) {
  auto& of_slot = draining_[left.slot];
  const auto same = std::find_if(of_slot.begin(), of_slot.end(), [&](const Draining& d) {
    return d.backends == left.backends && d.frontends == left.frontends;
  });
  if (same == of_slot.end()) {
    if (of_slot.empty()) {
      draining_slots_.push_back(left.slot);
    }
    of_slot.push_back(std::move(left));
    ++draining_count_;
    return;
  }
  forget(left);
  left.endpoints.insert(left.endpoints.end(), same->endpoints.begin(), same->endpoints.end());
  same->endpoints = without_duplicates(std::move(left.endpoints));
  same->left_at = left.left_at;
}

std::vector<core::EndpointId> ViewPublisher::endpoints_ever(core::ServiceSlot slot,
                                                            const ServicePort& block) const {
  std::vector<core::EndpointId> ids;
  for (const core::Endpoint& e : block.endpoints) {
    ids.push_back(e.id);
  }
  if (const auto at = draining_.find(slot); at != draining_.end()) {
    for (const Draining& d : at->second) {
      ids.insert(ids.end(), d.endpoints.begin(), d.endpoints.end());
    }
  }
  return without_duplicates(std::move(ids));
}

bool ViewPublisher::drop_drained(std::size_t slots) {
  const std::uint64_t oldest = cell_.oldest_seen();
  const auto drained = [&](const Draining& d) {
    if (oldest < d.left_at) {
      return false;  // a worker may still open a connection by an older view
    }
    return std::all_of(d.endpoints.begin(), d.endpoints.end(),
                       [&](core::EndpointId id) { return counts_.active(id) == 0; });
  };
  const std::size_t before = draining_count_;
  for (slots = std::min(slots, draining_slots_.size()); slots != 0; --slots) {
    const core::ServiceSlot slot = draining_slots_.front();
    draining_slots_.pop_front();
    const auto of_slot = draining_.find(slot);
    draining_count_ -= std::erase_if(of_slot->second, [&](const Draining& d) {
      const bool gone = drained(d);
      if (gone) {
        forget(d);
      }
      return gone;
    });
    if (of_slot->second.empty()) {
      draining_.erase(of_slot);
    } else {
      draining_slots_.push_back(slot);
    }
  }
  return draining_count_ != before;
}

/// Takes its places in the book back.
void ViewPublisher::forget(const Draining& gone) {
  for (const L4Address& b : gone.backends) {
    backends_.remove(b);
  }
  for (const L4Address& f : gone.frontends) {
    departed_.remove(f);
  }
}

void ViewPublisher::update_announced(const ForwardingTable& next) {
  if (next_.table != nullptr && next_.table->node_ptr() == next.node_ptr()) {
    return;
  }
  std::vector<core::IpAddress> wanted = next.node().v4.announced;
  wanted.insert(wanted.end(), next.node().v6.announced.begin(), next.node().v6.announced.end());
  std::sort(wanted.begin(), wanted.end());
  const auto& old = *next_.announced;
  const auto same = [](const Announced& a, const core::IpAddress& b) { return a.address == b; };
  if (std::equal(old.begin(), old.end(), wanted.begin(), wanted.end(), same)) {
    return;
  }
  auto list = std::make_shared<std::vector<Announced>>();
  for (const core::IpAddress& address : wanted) {
    const Announced* known = find_announced(next_, address);
    list->push_back({address, known != nullptr ? known->since : next_.sequence + 1});
    own_.add(SteeringBook::whole_address(address));
  }
  for (const Announced& one : *next_.announced) {
    own_.remove(SteeringBook::whole_address(one.address));
  }
  next_.announced = std::move(list);
}

void ViewPublisher::update_source_pool(const ForwardingTable& next) {
  const std::uint16_t first = next.node().snat_first_port;
  const std::uint16_t last = next.node().snat_last_port;
  if (first == pool_first_ && last == pool_last_) {
    return;
  }
  pool_first_ = first;
  pool_last_ = last;
  next_.source_pool = last == 0 || first > last
                          ? std::make_shared<const SourcePool>(workers_)
                          : std::make_shared<const SourcePool>(workers_, first, last);
}

void ViewPublisher::reserve_ports_of(const ServicePort& block, bool add) {
  // An external IP may be an address of this node, so its port is as good as a node port.
  const std::uint16_t used[] = {block.node_port, block.health_check_node_port,
                                block.external_ips.empty() ? std::uint16_t{0} : block.port};
  for (const std::uint16_t port : used) {
    reserve_port(port, add);
  }
}

void ViewPublisher::reserve_port(std::uint16_t port, bool add) {
  if (port == 0) {
    return;
  }
  std::uint32_t& users = port_users_[port];
  const bool before = users != 0;
  users += add ? 1u : ~0u;
  ports_changed_ = ports_changed_ || before != (users != 0);
}

void ViewPublisher::update_excluded() {
  if (!ports_changed_) {
    return;
  }
  ports_changed_ = false;
  auto set = std::make_shared<core::PortSet>();
  for (std::size_t port = 0; port < port_users_.size(); ++port) {
    if (port_users_[port] != 0) {
      set->insert(static_cast<std::uint16_t>(port));
    }
  }
  next_.excluded = std::move(set);
}

void ViewPublisher::freeze_book() {
  next_.book = std::make_shared<const SteeringBook>(
      SteeringBook{backends_.freeze(), departed_.freeze(), own_.freeze()});
}

void ViewPublisher::publish() {
  if (next_.table == nullptr) {
    return;  // routes and ports before the first table: kept for it
  }
  ++next_.sequence;
  cell_.publish(std::make_unique<const WorkerTables>(next_));
}

}  // namespace sluice::pipeline
