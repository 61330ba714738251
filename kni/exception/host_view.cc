#include "kni/exception/host_view.h"

#include <algorithm>

#include <linux/rtnetlink.h>

namespace sluice::kni {
namespace {

HostNeighbour::State state_of(const NeighbourRecord& record) {
  switch (record.state) {
    case NeighbourRecord::State::kValid:
      return HostNeighbour::State::kReachable;
    case NeighbourRecord::State::kPermanent:
      return HostNeighbour::State::kPermanent;
    case NeighbourRecord::State::kFailed:
      return HostNeighbour::State::kFailed;
    case NeighbourRecord::State::kResolving:
      break;
  }
  return HostNeighbour::State::kUnresolved;
}

}  // namespace

void HostView::apply(const Record& record) {
  if (const auto* link = std::get_if<LinkRecord>(&record)) {
    apply_link(*link);
  } else if (const auto* address = std::get_if<AddressRecord>(&record)) {
    apply_address(*address);
  } else if (const auto* neighbour = std::get_if<NeighbourRecord>(&record)) {
    apply_neighbour(*neighbour);
  } else if (std::holds_alternative<RouteRecord>(record)) {
    routes_stale_ = true;
  }
}

void HostView::clear() {
  for (std::size_t port = 0; port < taps_.size(); ++port) {
    tap_moved(port);
  }
  links_.clear();
  addresses_.clear();
  neighbours_.clear();
  addresses_changed_ = true;
  routes_stale_ = true;
}

std::optional<std::size_t> HostView::port_of(std::uint32_t link) const noexcept {
  const auto found = links_.find(link);
  return found == links_.end() ? std::nullopt : found->second.port;
}

std::uint32_t HostView::link_of(std::size_t port) const noexcept {
  for (const auto& [index, link] : links_) {
    if (link.port == port) {
      return index;
    }
  }
  return 0;
}

void HostView::apply_link(const LinkRecord& link) {
  routes_stale_ = true;
  if (link.removed) {
    // Addresses and neighbours of a link that goes are not all announced one by one.
    tap_moved(port_of(link.index));
    std::erase_if(addresses_, [&](const auto& entry) { return entry.first.first == link.index; });
    std::erase_if(neighbours_, [&](const auto& entry) { return entry.first.first == link.index; });
    links_.erase(link.index);
    addresses_changed_ = true;
    return;
  }
  Link& known = links_[link.index];
  if (known.name != link.name) {
    tap_moved(known.port);  // renamed: the port has lost it
    known.name = link.name;
    const auto tap = std::find(taps_.begin(), taps_.end(), link.name);
    known.port = tap == taps_.end() ? std::nullopt
                                    : std::optional<std::size_t>(tap - taps_.begin());
    addresses_changed_ = true;
  }
  known.up = link.up;
  if (!known.up || (known.port && seen_[*known.port].told != TapLink::kUp)) {
    tap_moved(known.port);
  }
}

void HostView::tap_moved(std::optional<std::size_t> port) noexcept {
  if (port) {
    seen_[*port].moved = true;
    taps_moved_ = true;
  }
}

TapLink HostView::tap_link(std::size_t port) const noexcept {
  const auto link = links_.find(link_of(port));
  if (link == links_.end()) {
    return TapLink::kGone;
  }
  return link->second.up ? TapLink::kUp : TapLink::kDown;
}

std::vector<TapChange> HostView::take_tap_changes() {
  std::vector<TapChange> changes;
  if (!std::exchange(taps_moved_, false)) {
    return changes;
  }
  for (std::size_t port = 0; port < taps_.size(); ++port) {
    if (std::exchange(seen_[port].moved, false)) {
      const TapLink now = tap_link(port);
      seen_[port].told = now;
      changes.push_back({port, now});
    }
  }
  return changes;
}

void HostView::apply_address(const AddressRecord& address) {
  routes_stale_ = true;
  const OnLink key{address.link, address.address};
  if (address.removed || !address.usable) {
    addresses_changed_ = addresses_.erase(key) != 0 || addresses_changed_;
    return;
  }
  const auto [at, added] = addresses_.insert_or_assign(key, address.length);
  addresses_changed_ = addresses_changed_ || added;
}

void HostView::apply_neighbour(const NeighbourRecord& neighbour) {
  const auto port = port_of(neighbour.link);
  if (!port) {
    return;
  }
  const OnLink key{neighbour.link, neighbour.address};
  if (neighbour.removed) {
    neighbours_.erase(key);
  } else {
    neighbours_[key] = neighbour;
  }
  neighbour_changes_.push_back(this->neighbour(*port, neighbour.address));
}

void HostView::set_routes(const std::vector<RouteRecord>& routes) {
  std::vector<RouteRecord> sorted;
  std::copy_if(routes.begin(), routes.end(), std::back_inserter(sorted),
               [](const RouteRecord& route) { return route.table == RT_TABLE_MAIN; });
  std::stable_sort(sorted.begin(), sorted.end(), [](const RouteRecord& a, const RouteRecord& b) {
    return a.prefix != b.prefix ? a.prefix < b.prefix : a.metric < b.metric;
  });
  std::vector<HostRoute> next;
  for (const RouteRecord& route : sorted) {
    const auto port = route.unicast ? port_of(route.link) : std::nullopt;
    next.push_back({route.prefix, port, port ? route.gateway : std::nullopt});
  }
  routes_stale_ = false;
  if (next != routes_) {
    routes_ = std::move(next);
    routes_changed_ = true;
  }
}

std::vector<HostNeighbour> HostView::take_neighbour_changes() {
  return std::exchange(neighbour_changes_, {});
}

std::vector<HostAddress> HostView::addresses() const {
  std::vector<HostAddress> all;
  for (const auto& [key, length] : addresses_) {
    const auto link = links_.find(key.first);
    if (link == links_.end() || key.second.is_loopback()) {
      continue;
    }
    all.push_back({key.second, link->second.name, length, link->second.port});
  }
  return all;
}

HostNeighbour HostView::neighbour(std::size_t port, const core::IpAddress& address) const {
  HostNeighbour answer;
  answer.port = port;
  answer.address = address;
  const auto own = std::find_if(addresses_.begin(), addresses_.end(),
                                [&](const auto& entry) { return entry.first.second == address; });
  if (own != addresses_.end()) {
    answer.state = HostNeighbour::State::kOwn;
    return answer;
  }
  const auto found = neighbours_.find({link_of(port), address});
  if (found != neighbours_.end()) {
    answer.state = state_of(found->second);
    answer.mac = found->second.mac;
  }
  return answer;
}

}  // namespace sluice::kni
