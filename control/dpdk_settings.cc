#include "control/dpdk_settings.h"

#include <array>
#include <utility>

namespace sluice::daemon {
namespace {

dpdk::DeviceKind device_kind(conf::DeviceKind kind) {
  switch (kind) {
    case conf::DeviceKind::kPci:
      return dpdk::DeviceKind::kPci;
    case conf::DeviceKind::kVdev:
      return dpdk::DeviceKind::kVdev;
    case conf::DeviceKind::kAfXdp:
      return dpdk::DeviceKind::kAfXdp;
    case conf::DeviceKind::kAfPacket:
      return dpdk::DeviceKind::kAfPacket;
    case conf::DeviceKind::kAuto:
      break;
  }
  return dpdk::DeviceKind::kAuto;
}

pipeline::OwnerTwist owner_twist(conf::OwnerMap map) {
  switch (map) {
    case conf::OwnerMap::kInverted:
      return pipeline::OwnerTwist::kInverted;
    case conf::OwnerMap::kLast:
      return pipeline::OwnerTwist::kLast;
    case conf::OwnerMap::kNormal:
      break;
  }
  return pipeline::OwnerTwist::kNone;
}

pipeline::IdleStrategy idle_strategy(conf::Idle idle) {
  switch (idle) {
    case conf::Idle::kSpin:
      return pipeline::IdleStrategy::kSpin;
    case conf::Idle::kYield:
      return pipeline::IdleStrategy::kYield;
    case conf::Idle::kSleep:
      return pipeline::IdleStrategy::kSleep;
    case conf::Idle::kAuto:
      break;
  }
  return pipeline::IdleStrategy::kAuto;
}

dpdk::HugepageUse hugepage_use(conf::Hugepages use) {
  switch (use) {
    case conf::Hugepages::kOn:
      return dpdk::HugepageUse::kOn;
    case conf::Hugepages::kOff:
      return dpdk::HugepageUse::kOff;
    case conf::Hugepages::kAuto:
      break;
  }
  return dpdk::HugepageUse::kAuto;
}

dpdk::PortSettings port_settings(const conf::PortConfig& port) {
  dpdk::PortSettings settings;
  settings.name = port.name;
  settings.kind = device_kind(port.kind);
  settings.target = port.target;
  settings.mtu = port.mtu;
  settings.queues = port.queues;
  settings.rx_descriptors = port.rx_descriptors;
  settings.tx_descriptors = port.tx_descriptors;
  settings.rss_key = port.rss_key;
  return settings;
}

core::ConnTimeouts timeouts(const conf::TimeoutsConfig& config) {
  using core::ConnState;
  const std::pair<ConnState, std::chrono::seconds> values[] = {
      {ConnState::kSynSent, config.tcp_syn_sent},
      {ConnState::kSynReceived, config.tcp_syn_received},
      {ConnState::kEstablished, config.tcp_established},
      {ConnState::kFinWait, config.tcp_fin_wait},
      {ConnState::kTimeWait, config.tcp_time_wait},
      {ConnState::kClosed, config.tcp_closed},
      {ConnState::kUdpNew, config.udp_new},
      {ConnState::kUdpStream, config.udp_stream},
      {ConnState::kSctpInit, config.sctp_init},
      {ConnState::kSctpEstablished, config.sctp_established},
      {ConnState::kSctpShutdown, config.sctp_shutdown},
  };
  core::ConnTimeouts result;
  for (const auto& [state, seconds] : values) {
    result[state] = core::ticks_of_ms(static_cast<std::uint64_t>(seconds.count()) * 1000);
  }
  return result;
}

}  // namespace

dpdk::GroupSettings group_settings(const conf::Config& config, dpdk::LogSink log) {
  dpdk::GroupSettings settings;
  settings.eal.file_prefix = config.eal.file_prefix;
  settings.eal.extra_args = config.eal.extra_args;
  settings.eal.hugepages = hugepage_use(config.memory.hugepages);
  settings.eal.memory_limit_mib = config.memory.mib;
  for (const conf::PortConfig& port : config.ports) {
    settings.ports.push_back(port_settings(port));
  }
  settings.workers = config.workers.count;
  settings.cores = config.workers.cores;
  for (std::uint32_t worker = 0; worker < config.workers.count; ++worker) {
    settings.idle.push_back(idle_strategy(config.workers.idle_of(worker)));
  }
  settings.mbufs = config.memory.mbufs;
  settings.services = config.tables.services;
  settings.backends = config.tables.backends;
  settings.connections = config.tables.connections;
  settings.next_hops = config.tables.next_hops;
  settings.handover_ring = config.tables.handover_ring;
  settings.timeouts = timeouts(config.timeouts);
  settings.owner_twist = owner_twist(config.test_owner_map);
  settings.log = std::move(log);
  return settings;
}

kni::InterfaceSetup interface_setup(const conf::PortConfig& port) {
  kni::InterfaceSetup setup;
  for (const conf::InterfaceAddress& address : port.addresses) {
    setup.addresses.push_back({address.address, address.length});
  }
  for (const conf::Route& route : port.routes) {
    setup.routes.push_back({route.to, route.via});
  }
  return setup;
}

PortRange snat_ports(const conf::SnatConfig& snat) {
  return {snat.first(), snat.last()};
}

}  // namespace sluice::daemon
