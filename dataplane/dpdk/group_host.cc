// The group's side towards the control plane and the host's mirror: tables, routes, addresses and
// neighbours in, requests out.

#include <utility>

#include "dataplane/dpdk/worker_group.h"

namespace sluice::dpdk {
namespace {

using core::ForwardingMode;

bool is_link_local(const core::IpAddress& address) noexcept {
  return !address.is_v4() && address.data()[0] == 0xfe && (address.data()[1] & 0xc0) == 0x80;
}

}  // namespace

core::Capabilities WorkerGroup::capabilities() const {
  return {"dpdk",
          {core::kAllSchedulers.begin(), core::kAllSchedulers.end()},
          {ForwardingMode::kByRule, ForwardingMode::kNat, ForwardingMode::kFullNat,
           ForwardingMode::kDr, ForwardingMode::kIpip}};
}

core::Result<core::ApplyReport> WorkerGroup::apply(const core::TablePtr& table) {
  {
    const std::lock_guard lock(publish_mutex_);
    publisher_->apply(table);
    loads_->see(table);
  }
  if (on_table_) {
    on_table_(*table);
  }
  return core::ApplyReport{table->generation(), {}};  // workers can do all that a table asks for
}

std::vector<pipeline::PortInfo> WorkerGroup::port_infos() const {
  std::vector<pipeline::PortInfo> infos;
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    pipeline::PortInfo info;
    info.present = true;
    info.rx_partial_csum = plans_[i].kernel_fed;
    info.mtu = plans_[i].settings.mtu;
    info.mac = ports_[i]->mac();
    info.ingress = tap_name(plans_[i].settings.name);
    // Sources of what we send are chosen from the front: link-local ones come last.
    for (const bool link_local : {false, true}) {
      for (const core::IpAddress& address : addresses_[i]) {
        if (is_link_local(address) == link_local) {
          info.addresses.push_back(address);
        }
      }
    }
    infos.push_back(std::move(info));
  }
  return infos;
}

void WorkerGroup::set_addresses(std::vector<std::vector<core::IpAddress>> addresses) {
  const std::lock_guard lock(publish_mutex_);
  addresses.resize(plans_.size());
  if (addresses != addresses_) {
    addresses_ = std::move(addresses);
    publisher_->set_ports(port_infos());
  }
}

void WorkerGroup::set_routes(std::vector<pipeline::Route> routes) {
  const std::lock_guard lock(publish_mutex_);
  publisher_->set_routes(pipeline::RouteTable(std::move(routes)));
}

void WorkerGroup::set_reserved_ports(std::vector<std::uint16_t> ports) {
  const std::lock_guard lock(publish_mutex_);
  publisher_->set_reserved_ports(std::move(ports));
}

core::Result<void> WorkerGroup::remake_tap(std::size_t port) {
  auto fresh = Tap::create(taps_[port].name(), plans_[port].settings.mtu);
  if (!fresh) {
    return tl::make_unexpected(fresh.error());
  }
  if (auto done = fresh->set_mac(ports_[port]->mac()); !done) {
    return done;
  }
  return taps_[port].replace_by(std::move(*fresh));
}

void WorkerGroup::set_host_fault(std::size_t port, std::string fault) {
  const std::lock_guard lock(faults_mutex_);
  host_faults_[port] = std::move(fault);
}

std::string WorkerGroup::degraded() const {
  const std::lock_guard lock(faults_mutex_);
  std::string all;
  for (const std::string& fault : host_faults_) {
    all += (all.empty() || fault.empty() ? "" : "; ") + fault;
  }
  return all;
}

void WorkerGroup::take_requests(std::vector<pipeline::NeighbourRequest>& out) {
  places_->turn_over(publisher_->cell(), [this] {
    const std::lock_guard lock(publish_mutex_);
    return publisher_->renew_epoch();
  });
  pipeline::NeighbourRequest request;
  for (const auto& member : members_) {
    while (member->requests.pop(&request, 1) == 1) {
      if (places_->request(request)) {
        out.push_back(request);
      } else {
        tell_hops_are_full();
      }
    }
  }
}

void WorkerGroup::forget_neighbour(pipeline::PortIndex port, const core::IpAddress& address) {
  places_->forget(port, address);
}

void WorkerGroup::set_neighbour(pipeline::PortIndex port, const core::IpAddress& address,
                                const core::MacAddress& mac, pipeline::NeighbourState state) {
  if (!places_->set(port, address, mac, state)) {
    tell_hops_are_full();
  }
}

void WorkerGroup::tell_hops_are_full() {
  if (!std::exchange(hops_full_told_, true)) {
    log(Severity::kWarning, "next hops: all " + std::to_string(settings_.next_hops) +
                                " are in use, raise tables.next-hops");
  }
}

}  // namespace sluice::dpdk
