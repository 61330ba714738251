#include "control/host_side.h"

#include <utility>

#include "control/dpdk_settings.h"
#include "kni/exception/interface_setup.h"
#include "kni/exception/socket_ports.h"

namespace sluice::daemon {
namespace {

pipeline::NeighbourState word_state(kni::HostNeighbour::State state) {
  switch (state) {
    case kni::HostNeighbour::State::kReachable:
    case kni::HostNeighbour::State::kPermanent:
      return pipeline::NeighbourState::kReachable;
    case kni::HostNeighbour::State::kFailed:
      return pipeline::NeighbourState::kFailed;
    case kni::HostNeighbour::State::kOwn:
      return pipeline::NeighbourState::kHost;
    case kni::HostNeighbour::State::kUnresolved:
      break;
  }
  return pipeline::NeighbourState::kUnresolved;
}

}  // namespace

core::Result<std::unique_ptr<HostSide>> HostSide::start(const conf::Config& config,
                                                        dpdk::WorkerGroup& group, Calls calls) {
  std::unique_ptr<HostSide> side(new HostSide(group, std::move(calls)));
  if (auto done = side->set_up(config); !done) {
    return tl::make_unexpected(done.error());
  }
  side->keeper_ = side->make_keeper(config);
  if (auto done = side->follow(); !done) {
    return tl::make_unexpected(done.error());
  }
  return side;
}

HostSide::~HostSide() { stop(); }

void HostSide::stop() {
  if (mirror_ != nullptr) {
    mirror_->stop();
  }
}

core::Result<void> HostSide::set_up(const conf::Config& config) {
  const std::vector<std::string> taps = group_.tap_names();
  for (std::size_t i = 0; i < taps.size(); ++i) {
    if (auto done = kni::set_up_interface(taps[i], interface_setup(config.ports[i])); !done) {
      return tl::make_unexpected(
          core::Error{"port " + config.ports[i].name + ": " + done.error().message});
    }
  }
  auto routes = kni::AnnounceRoutes::create(taps);
  if (!routes) {
    return tl::make_unexpected(routes.error());
  }
  announce_routes_ = std::move(*routes);
  group_.on_table([this](const core::ForwardingTable& table) { take_table(table); });
  if (config.snat.addresses.empty()) {
    const PortRange range = snat_ports(config.snat);
    group_.set_reserved_ports(kni::used_ports(range.first, range.last));
    auto reserved = kni::ReservedPorts::reserve(range.first, range.last);
    if (!reserved) {
      return tl::make_unexpected(reserved.error());
    }
    reserved_.emplace(std::move(*reserved));
  }
  return {};
}

std::unique_ptr<TapKeeper> HostSide::make_keeper(const conf::Config& config) {
  std::vector<TapKeeper::Tap> taps;
  std::vector<kni::InterfaceSetup> setups;
  const std::vector<std::string> names = group_.tap_names();
  for (std::size_t i = 0; i < names.size(); ++i) {
    taps.push_back({config.ports[i].name, names[i]});
    setups.push_back(interface_setup(config.ports[i]));
  }
  TapKeeper::Calls calls;
  calls.remake = [this](std::size_t port) { return group_.remake_tap(port); };
  calls.set_up = [names, setups = std::move(setups)](std::size_t port) {
    return kni::set_up_interface(names[port], setups[port]);
  };
  calls.fault = [this](std::size_t port, std::string fault) {
    group_.set_host_fault(port, std::move(fault));
  };
  calls.warn = calls_.warn;
  return std::make_unique<TapKeeper>(std::move(taps), std::move(calls));
}

core::Result<void> HostSide::follow() {
  kni::MirrorEvents events;
  events.addresses = [this](const auto& addresses) { take_addresses(addresses); };
  events.routes = [this](const auto& routes) { take_routes(routes); };
  events.neighbour = [this](const auto& neighbour) { take_neighbour(neighbour); };
  events.tap = [this](const kni::TapChange& change) {
    keeper_->changed(change, TapKeeper::Clock::now());
  };
  events.wishes = [this](std::vector<kni::NeighbourWish>& out) {
    keeper_->retry(TapKeeper::Clock::now());
    std::vector<pipeline::NeighbourRequest> requests;
    group_.take_requests(requests);
    for (const pipeline::NeighbourRequest& request : requests) {
      out.push_back({static_cast<std::size_t>(request.port), request.address, request.vouched,
                     request.seen});
    }
  };
  events.forgotten = [this](const kni::NeighbourWish& wish) {
    group_.forget_neighbour(static_cast<pipeline::PortIndex>(wish.port), wish.address);
  };
  events.warn = calls_.warn;
  mirror_ = std::make_unique<kni::Mirror>(group_.tap_names(), std::move(events));
  return mirror_->start();
}

void HostSide::take_addresses(const std::vector<kni::HostAddress>& addresses) {
  compile::HostState state;
  std::vector<std::vector<core::IpAddress>> of_ports(group_.tap_names().size());
  for (const kni::HostAddress& address : addresses) {
    state.addresses.push_back({address.address, address.interface});
    if (address.port) {
      of_ports[*address.port].push_back(address.address);
    }
  }
  group_.set_addresses(std::move(of_ports));
  if (calls_.host_state) {
    calls_.host_state(std::move(state));
  }
}

void HostSide::take_routes(const std::vector<kni::HostRoute>& routes) {
  std::vector<pipeline::Route> mine;
  for (const kni::HostRoute& route : routes) {
    const auto port = route.port ? static_cast<pipeline::PortIndex>(*route.port)
                                 : pipeline::PortIndex::kNone;
    mine.push_back({route.prefix, port, route.gateway});
  }
  group_.set_routes(std::move(mine));
}

void HostSide::take_neighbour(const kni::HostNeighbour& neighbour) {
  group_.set_neighbour(static_cast<pipeline::PortIndex>(neighbour.port), neighbour.address,
                       neighbour.mac, word_state(neighbour.state));
}

void HostSide::take_table(const core::ForwardingTable& table) {
  std::vector<core::IpAddress> announced = table.node().v4.announced;
  const auto& six = table.node().v6.announced;
  announced.insert(announced.end(), six.begin(), six.end());
  if (auto done = announce_routes_->set(announced); !done && calls_.warn) {
    calls_.warn("announce: " + done.error().message);
  }
}

}  // namespace sluice::daemon
