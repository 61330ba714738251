#include "bench/rig.h"

#include <algorithm>
#include <optional>

#include "dataplane/core/fwd/invariants.h"
#include "dataplane/core/fwd/table_builder.h"

namespace sluice::bench {
namespace {

constexpr std::uint16_t kWorkersPort = 0;

std::size_t workers_of(const RigConfig& config) {
  return config.handed_over || config.shared ? 2 : 1;
}

/// All flows belong to worker 0, or, turned round, to worker 1, or each to one of both.
pipeline::OwnerMap::Config owner_config(const RigConfig& config) {
  pipeline::OwnerMap::Config owner;
  owner.workers = workers_of(config);
  owner.reta = {0, static_cast<std::uint16_t>(config.shared ? 1 : 0)};
  owner.twist = config.handed_over ? pipeline::OwnerTwist::kInverted : pipeline::OwnerTwist::kNone;
  return owner;
}

core::IpAddress address(core::Family family, std::uint8_t block, std::uint32_t n) {
  return family == core::Family::kIpv4 ? core::IpAddress(numbered<core::Ipv4>(block, n))
                                       : core::IpAddress(numbered<core::Ipv6>(block, n));
}

core::ServicePort service(const RigConfig& config, std::uint32_t endpoints) {
  using Space = FlowSpace<core::Ipv4>;
  core::ServicePort s;
  s.name = "bench/web";
  s.family = config.family;
  s.port = 80;
  s.cluster_ip = address(config.family, Space::kVips, 2);
  s.load_balancer_vips = {address(config.family, Space::kVips, 1)};
  s.externally_accessible = true;
  s.has_any = s.has_internal = s.has_external = true;
  s.protocol = config.protocol;
  s.scheduler = config.scheduler;
  s.affinity_seconds = config.affinity ? 10800 : 0;
  s.mode = config.fullnat ? core::ForwardingMode::kByRule
           : config.ipip  ? core::ForwardingMode::kIpip
           : config.dr    ? core::ForwardingMode::kDr
                          : core::ForwardingMode::kNat;
  s.masquerade_external = config.fullnat;
  for (std::uint32_t n = 0; n < endpoints; ++n) {
    core::Endpoint e;
    e.address = address(config.family, Space::kBackends, 1 + n);
    e.port = config.ipip || config.dr ? s.port : std::uint16_t{8080};
    e.id = static_cast<core::EndpointId>(n);
    s.endpoints.push_back(e);
  }
  std::sort(s.endpoints.begin(), s.endpoints.end(), [](const auto& a, const auto& b) {
    return core::to_string(a.address, a.port) < core::to_string(b.address, b.port);
  });
  for (std::uint32_t n = 0; n < endpoints; ++n) {
    s.cluster.push_back(static_cast<core::EndpointIndex>(n));
  }
  s.all_reachable = s.cluster;
  return s;
}

core::Result<core::TablePtr> make_table(const RigConfig& config, core::TablePtr before,
                                        std::uint32_t endpoints) {
  core::TableBuilder builder(std::move(before));
  const core::ServicePort s = service(config, endpoints);
  const core::ServiceSlot slot{0};
  builder.set_service(slot, s);
  for (const auto& [key, kind] : core::claimed_frontends(s)) {
    builder.set_frontend(key, {slot, kind});
  }
  core::NodePart node;
  node.node_name = "bench";
  node.snat_first_port = 1024;
  node.snat_last_port = 65535;
  auto& family = node.of(config.family);
  family.active_cluster_ips = {s.cluster_ip};
  for (std::uint32_t n = 0; n < Rig::kSnatAddresses; ++n) {
    family.snat_addresses.push_back(address(config.family, FlowSpace<core::Ipv4>::kSnat, 1 + n));
  }
  builder.set_node(node);
  return builder.freeze();
}

}  // namespace

Rig::Rig(const RigConfig& config)
    : config_(config),
      counts_(workers_of(config), 4096),
      publisher_(workers_of(config), counts_),
      rings_(workers_of(config), 512),
      owners_(owner_config(config)) {}

core::Result<std::unique_ptr<Rig>> Rig::create(const RigConfig& config) {
  std::unique_ptr<Rig> rig(new Rig(config));
  const std::size_t workers = workers_of(config);
  for (std::size_t w = 0; w < workers; ++w) {
    if (auto added = rig->add_member(w, workers); !added) {
      return tl::unexpected(added.error());
    }
  }
  const core::MacAddress own{{2, 2, 2, 2, 2, 2}};
  const auto gateway = address(config.family, 9, 1);
  const pipeline::PortIndex port{kWorkersPort};
  pipeline::PortInfo info;
  info.present = true;
  info.mac = own;
  info.addresses = {address(config.family, 9, 2)};
  info.ingress = "bench0";
  rig->publisher_.set_ports({info});
  const core::IpAddress any = config.family == core::Family::kIpv4
                                  ? core::IpAddress{}
                                  : core::IpAddress(core::Ipv6Address{});
  const auto via = config.dr ? std::nullopt : std::optional(gateway);
  rig->publisher_.set_routes(pipeline::RouteTable({{core::Cidr(any, 0), port, via}}));
  rig->add_neighbour(gateway);
  for (std::uint32_t n = 0; config.dr && n < kBackends; ++n) {
    rig->add_neighbour(address(config.family, FlowSpace<core::Ipv4>::kBackends, 1 + n));
  }
  if (auto applied = rig->apply_table(); !applied) {
    return tl::unexpected(applied.error());
  }
  return rig;
}

core::Result<void> Rig::apply_table() {
  auto table = make_table(config_, table_, endpoints_);
  if (!table) {
    return tl::unexpected(table.error());
  }
  table_ = *table;
  publisher_.apply(table_);
  (void)publisher_.collect();
  return {};
}

core::Result<void> Rig::change_endpoint() {
  endpoints_ = endpoints_ == kBackends ? kBackends - 1 : kBackends;
  return apply_table();
}

void Rig::add_neighbour(const core::IpAddress& at) {
  const pipeline::PortIndex port{kWorkersPort};
  hops_.write(hops_.add(port, at),
              pipeline::NextHopWord::make(core::MacAddress{{2, 0, 0, 0, 0, 9}}, port,
                                          pipeline::NeighbourState::kReachable));
}

core::Result<void> Rig::add_member(std::size_t index, std::size_t workers) {
  // The EAL's names are the process's, and several rigs may live at once.
  static std::uint32_t made = 0;
  const std::string suffix = "n" + std::to_string(made++);
  const bool owns = index + 1 == workers || config_.shared;
  const auto size_of = [&](core::Family family) {
    return family == config_.family && owns ? config_.connections : 30u;
  };
  core::ConnTableConfig conns4;
  conns4.hash_seed = 1;
  conns4.half_open_divisor = 1;
  conns4.timeouts = config_.timeouts;
  core::ConnTableConfig conns6 = conns4;
  conns4.capacity = size_of(core::Family::kIpv4);
  conns6.capacity = size_of(core::Family::kIpv6);
  auto store4 = dpdk::ConnStore<core::Ipv4>::create({"c4" + suffix}, conns4);
  if (!store4) {
    return tl::unexpected(store4.error());
  }
  auto store6 = dpdk::ConnStore<core::Ipv6>::create({"c6" + suffix}, conns6);
  if (!store6) {
    return tl::unexpected(store6.error());
  }
  auto member = std::make_unique<Member>();
  member->memory4 = std::make_unique<dpdk::EntryMemory>(std::move(store4->memory));
  member->memory6 = std::make_unique<dpdk::EntryMemory>(std::move(store6->memory));
  if (auto added = add_steering(*member, workers, "st" + suffix); !added) {
    return added;
  }
  pipeline::WorkerConfig worker;
  worker.index = index;
  worker.workers = workers;
  worker.pace = config_.pace;
  if (member->steering != nullptr) {
    worker.steering_memory = member->steering->span();
  }
  if (!config_.limits_new_flows) {
    worker.overload_bursts = UINT32_MAX;
  }
  const pipeline::WorkerLinks links{
      publisher_.cell(), rings_,           owners_,          hops_,
      counts_,           member->counters, member->requests, member->dumps};
  member->worker = std::make_unique<Worker>(worker, links, member->io, std::move(store4->table),
                                            std::move(store6->table), BenchClock{&now_ns_});
  members_.push_back(std::move(member));
  return {};
}

core::Result<void> Rig::add_steering(Member& member, std::size_t workers,
                                     const std::string& name) {
  const std::size_t bytes =
      pipeline::SteeringCache::memory_bytes(workers, config_.connections);
  if (bytes == 0) {
    return {};
  }
  auto memory = dpdk::EntryMemory::allocate({name}, bytes);
  if (!memory) {
    return tl::unexpected(memory.error());
  }
  member.steering = std::make_unique<dpdk::EntryMemory>(std::move(*memory));
  return {};
}

std::string Rig::counters() const {
  std::string text;
  for (std::size_t w = 0; w < members_.size(); ++w) {
    for (std::size_t c = 0; c < pipeline::kCounters; ++c) {
      const auto value = members_[w]->counters.read(static_cast<pipeline::Counter>(c));
      if (value != 0) {
        text += " w" + std::to_string(w) + "." + std::string(pipeline::kCounterTable[c].name) +
                "=" + std::to_string(value);
      }
    }
  }
  return text;
}

}  // namespace sluice::bench
