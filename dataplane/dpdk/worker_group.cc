#include "dataplane/dpdk/worker_group.h"

#include <chrono>
#include <utility>

#include <rte_launch.h>
#include <rte_lcore.h>

#include "dataplane/dpdk/cores.h"

namespace sluice::dpdk {
namespace {

constexpr std::size_t kTapRing = 1024;
constexpr auto kCollectPeriod = std::chrono::milliseconds(10);
// Frames in flight inside the kernel come back within a few milliseconds.
constexpr auto kSendPatience = std::chrono::milliseconds(300);
constexpr std::uint32_t kEthernetAndVlan = 18;

}  // namespace

WorkerGroup::WorkerGroup(GroupSettings settings) : settings_(std::move(settings)) {}

WorkerGroup::~WorkerGroup() {
  (void)stop();
}

core::Result<std::unique_ptr<WorkerGroup>> WorkerGroup::create(GroupSettings settings) {
  std::unique_ptr<WorkerGroup> group(new WorkerGroup(std::move(settings)));
  if (auto done = group->plan(); !done) {
    return tl::make_unexpected(done.error());
  }
  const auto memory = group->plan_memory();
  if (!memory) {
    return tl::make_unexpected(memory.error());
  }
  using Step = core::Result<void> (WorkerGroup::*)();
  for (const Step step : {&WorkerGroup::make_taps, &WorkerGroup::guard_interfaces}) {
    if (auto done = (group.get()->*step)(); !done) {
      return tl::make_unexpected(done.error());
    }
  }
  EalSettings eal = group->settings_.eal;
  eal.worker_cores = group->cores_;
  for (const PortPlan& plan : group->plans_) {
    if (plan.kind == DeviceKind::kPci) {
      eal.pci.push_back(plan.settings.target);
    }
  }
  auto started = Eal::start(eal, *memory, group->settings_.log);
  if (!started) {
    return tl::make_unexpected(started.error());
  }
  group->eal_ = std::move(*started);
  for (const Step step : {&WorkerGroup::open_ports, &WorkerGroup::make_workers}) {
    if (auto done = (group.get()->*step)(); !done) {
      return tl::make_unexpected(done.error());
    }
  }
  return group;
}

core::Result<std::unique_ptr<WorkerGroup>> WorkerGroup::create_stepped(GroupSettings settings,
                                                                       std::unique_ptr<Eal> eal) {
  std::unique_ptr<WorkerGroup> group(new WorkerGroup(std::move(settings)));
  group->eal_ = std::move(eal);
  group->cores_.assign(group->settings_.workers, 0);
  using Step = core::Result<void> (WorkerGroup::*)();
  group->mbufs_ = group->settings_.mbufs;
  for (const Step step :
       {&WorkerGroup::plan_ports, &WorkerGroup::open_ports, &WorkerGroup::make_workers}) {
    if (auto done = (group.get()->*step)(); !done) {
      return tl::make_unexpected(done.error());
    }
  }
  return group;
}

core::Result<void> WorkerGroup::plan() {
  auto cores = choose_cores(settings_.workers, settings_.cores, available_cores());
  if (!cores) {
    return tl::make_unexpected(cores.error());
  }
  cores_ = std::move(*cores);
  return plan_ports();
}

core::Result<void> WorkerGroup::plan_ports() {
  if (settings_.ports.empty() || settings_.ports.size() > pipeline::kMaxPorts) {
    return tl::make_unexpected(core::Error{"ports: " + std::to_string(settings_.ports.size()) +
                                           " are configured, 1 to " +
                                           std::to_string(pipeline::kMaxPorts) + " are possible"});
  }
  for (const PortSettings& port : settings_.ports) {
    auto planned = plan_port(port, settings_.workers, vdev_numbers_);
    if (!planned) {
      return tl::make_unexpected(planned.error());
    }
    plans_.push_back(std::move(*planned));
  }
  return {};
}

core::Result<MemoryChoice> WorkerGroup::plan_memory() {
  PoolNeed need;
  need.workers = settings_.workers;
  need.handover_ring = settings_.handover_ring;
  need.tap_ring = settings_.taps ? kTapRing : 0;
  for (const PortPlan& plan : plans_) {
    need.ports.push_back({plan.queues, plan.settings.rx_descriptors, plan.settings.tx_descriptors,
                          plan.kind == DeviceKind::kAfXdp});
  }
  mbufs_ = settings_.mbufs != 0 ? settings_.mbufs : mbufs_needed(need);
  std::vector<MemoryPart> parts = {
      {std::to_string(mbufs_) + " packet buffers", MbufPool::memory_bytes(mbufs_, max_frame())},
      {std::to_string(settings_.connections) + " connections a family for " +
           std::to_string(settings_.workers) + " workers",
       settings_.workers * LcoreWorker::memory_bytes(settings_.connections)}};
  if (const auto each = LcoreWorker::steering_bytes(settings_.workers, settings_.connections);
      each != 0) {
    parts.push_back({"workers of flows", settings_.workers * each});
  }
  const MemoryPart rings = {
      "handover rings",
      pipeline::HandoverRings::memory_bytes(settings_.workers, settings_.handover_ring)};
  auto choice = choose_memory(parts, settings_.eal.memory_limit_mib, settings_.eal.hugepages,
                              without(read_host_memory(), rings));
  if (!choice) {
    return choice;
  }
  memory_text_ = choice->explanation + "; beside them " + to_text(rings);
  for (const PortPlan& plan : plans_) {
    if (plan.shares_memory && !choice->hugepages) {
      return tl::make_unexpected(core::Error{
          "port " + plan.settings.name + ": its peer maps our memory, which takes huge pages: " +
          std::to_string(choice->mib) + " MiB of them, free or not switched off"});
    }
    settings_.eal.shared_memory |= plan.shares_memory;
  }
  return choice;
}

std::uint32_t WorkerGroup::max_frame() const noexcept {
  std::uint32_t most = 1500;
  for (const PortPlan& plan : plans_) {
    most = std::max<std::uint32_t>(most, plan.settings.mtu);
  }
  return most + kEthernetAndVlan;
}

core::Result<void> WorkerGroup::make_taps() {
  for (std::size_t i = 0; settings_.taps && i < plans_.size(); ++i) {
    auto tap = Tap::create(tap_name(plans_[i].settings.name), plans_[i].settings.mtu);
    if (!tap) {
      return tl::make_unexpected(tap.error());
    }
    taps_.push_back(std::move(*tap));
  }
  return {};
}

core::Result<void> WorkerGroup::guard_interfaces() {
  guards_.resize(plans_.size());
  for (std::size_t i = 0; i < plans_.size(); ++i) {
    const PortPlan& plan = plans_[i];
    if (!plan.interface.empty() && settings_.guard) {
      auto guard = settings_.guard(plan.interface, plan.kind == DeviceKind::kAfPacket);
      if (!guard) {
        return tl::make_unexpected(
            core::Error{"port " + plan.settings.name + ": " + guard.error().message});
      }
      guards_[i] = std::move(*guard);
    }
  }
  for (const PortPlan& plan : plans_) {
    if (auto done = prepare_port(plan); !done) {
      return done;
    }
  }
  return {};
}

core::Result<void> WorkerGroup::open_ports() {
  bool one_page = false;
  for (const PortPlan& plan : plans_) {
    one_page = one_page || plan.kind == DeviceKind::kAfXdp;
  }
  auto pool = MbufPool::create(mbufs_, max_frame(), one_page);
  if (!pool) {
    return tl::make_unexpected(pool.error());
  }
  pool_ = std::make_unique<MbufPool>(std::move(*pool));
  host_rings_ = std::make_unique<HostRings>(settings_.workers, plans_.size(), kTapRing);
  choose_rss_key();
  for (std::size_t i = 0; i < plans_.size(); ++i) {
    if (auto done = open_port(i, rss_key_); !done) {
      return done;
    }
    if (settings_.taps) {
      if (auto done = taps_[i].set_mac(ports_[i]->mac()); !done) {
        return done;
      }
    }
  }
  mbufs_in_drivers_ = pool_->in_use();
  return {};
}

/// A key of the configuration is used as it is; ours is made to steer replies.
void WorkerGroup::choose_rss_key() {
  rss_key_ = settings_.ports.front().rss_key;
  if (!rss_key_.empty()) {
    return;
  }
  const auto standard = pipeline::default_rss_key();
  rss_key_.assign(standard.begin(), standard.end());
  if (settings_.workers == 1) {
    return;
  }
  auto steering = ReplySteering::create(standard);
  if (!steering) {
    log(Severity::kInfo, "steering of replies: " + steering.error().message);
    return;
  }
  steering_ = std::move(*steering);
  rss_key_.assign(steering_->key().begin(), steering_->key().end());
}

core::Result<void> WorkerGroup::open_port(std::size_t index, std::span<const std::uint8_t> key) {
  const Port::Environment environment{eal_.get(), pool_.get(), settings_.workers, key};
  auto port = Port::open(plans_[index], environment);
  if (!port && plans_[index].settings.kind == DeviceKind::kAuto &&
      plans_[index].kind == DeviceKind::kAfXdp) {
    plans_[index] = fall_back_to_af_packet(plans_[index], settings_.workers, vdev_numbers_,
                                           port.error().message);
    if (settings_.guard) {
      guards_[index].reset();
      auto guard = settings_.guard(plans_[index].interface, true);
      if (!guard) {
        return tl::make_unexpected(guard.error());
      }
      guards_[index] = std::move(*guard);
    }
    port = Port::open(plans_[index], environment);
  }
  if (!port) {
    return tl::make_unexpected(port.error());
  }
  ports_.push_back(std::move(*port));
  return {};
}

std::vector<IoPort> WorkerGroup::io_ports(std::uint32_t worker) const {
  std::vector<IoPort> ports;
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    IoPort port;
    port.index = static_cast<pipeline::PortIndex>(i);
    port.receive = ports_[i]->queues_of(worker);
    port.transmit = ports_[i]->tx_queue_of(worker);
    port.max_frame = plans_[i].settings.mtu + kEthernetAndVlan;
    if (ports_[i]->hashes_replies()) {
      port.steering = steering_.get();
      port.queue = static_cast<std::uint16_t>(worker);  // Port::queues_of(): its first one
    }
    ports.push_back(std::move(port));
  }
  return ports;
}

core::Result<void> WorkerGroup::make_workers() {
  const std::uint32_t workers = settings_.workers;
  counts_ = std::make_unique<pipeline::ConnectionCounts>(workers, settings_.backends);
  publisher_ = std::make_unique<pipeline::ViewPublisher>(workers, *counts_);
  loads_ = std::make_unique<pipeline::LoadSharing>(*counts_);
  rings_ = std::make_unique<pipeline::HandoverRings>(workers, settings_.handover_ring);
  hops_ = std::make_unique<pipeline::NextHopDirectory>(settings_.next_hops);
  places_ = std::make_unique<pipeline::NextHopPlaces>(*hops_);
  pipeline::OwnerMap::Config owners;
  owners.workers = workers;
  owners.rss_key = rss_key_;
  owners.twist = settings_.owner_twist;
  owners_ = std::make_unique<pipeline::OwnerMap>(owners);
  const std::uint64_t hash_seed = LcoreWorker::random_seed();
  for (std::uint32_t w = 0; w < workers; ++w) {
    auto member = std::make_unique<Member>();
    member->index = w;
    member->group = this;
    member->idle = w < settings_.idle.size() ? settings_.idle[w] : pipeline::IdleStrategy::kAuto;
    const pipeline::WorkerLinks links{
        publisher_->cell(), *rings_,          *owners_,         *hops_,
        *counts_,           member->counters, member->requests, member->dumps};
    LcoreWorkerConfig config;
    config.index = w;
    config.workers = workers;
    config.connections = settings_.connections;
    config.service_slots = settings_.services;
    config.timeouts = settings_.timeouts;
    config.hash_seed = hash_seed;
    config.numa_socket = static_cast<int>(rte_lcore_to_socket_id(Eal::lcore_of_worker(w)));
    auto worker = LcoreWorker::create(config, links, io_ports(w), pool_->get(), *host_rings_);
    if (!worker) {
      return tl::make_unexpected(worker.error());
    }
    member->worker = std::move(*worker);
    members_.push_back(std::move(member));
  }
  addresses_.resize(plans_.size());
  host_faults_.resize(plans_.size());
  publisher_->set_ports(port_infos());
  return {};
}

int WorkerGroup::lcore_main(void* member) {
  auto& self = *static_cast<Member*>(member);
  self.worker->run(self.group->stop_, self.idle);
  self.running.store(false, std::memory_order_release);
  return 0;
}

core::Result<void> WorkerGroup::start() {
  started_ = true;
  if (settings_.taps) {
    std::vector<const Tap*> taps;
    for (const Tap& tap : taps_) {
      taps.push_back(&tap);
    }
    tap_thread_ = std::make_unique<TapThread>(std::move(taps), *host_rings_, pool_->get());
    tap_thread_->start();
  }
  for (const auto& member : members_) {
    member->running.store(true, std::memory_order_release);
    const unsigned lcore = Eal::lcore_of_worker(member->index);
    if (rte_eal_remote_launch(lcore_main, member.get(), lcore) != 0) {
      member->running = false;
      return tl::make_unexpected(
          core::Error{"worker " + std::to_string(member->index) + " does not start"});
    }
  }
  housekeeping_ = std::thread([this] { housekeeping(); });
  return {};
}

void WorkerGroup::housekeeping() {
  pthread_setname_np(pthread_self(), "slc-keeper");
  auto collect_at = std::chrono::steady_clock::now();
  while (!stop_.load(std::memory_order_acquire)) {
    auto pause = kCollectPeriod;
    {
      const std::lock_guard lock(publish_mutex_);
      if (const auto now = std::chrono::steady_clock::now(); now >= collect_at) {
        publisher_->collect();
        collect_at = now + kCollectPeriod;
      }
      if (!loads_->idle()) {
        loads_->share();
        pause = pipeline::LoadSharing::kPeriod;
      }
    }
    std::this_thread::sleep_for(pause);
  }
}

bool WorkerGroup::healthy() const noexcept {
  for (const auto& member : members_) {
    if (!member->running.load(std::memory_order_acquire)) {
      return false;
    }
  }
  return true;
}

void WorkerGroup::wait_for_sends() {
  const auto end = std::chrono::steady_clock::now() + kSendPatience;
  do {
    for (const auto& port : ports_) {
      port->reap();
    }
    if (pool_->in_use() <= mbufs_in_drivers_) {
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  } while (std::chrono::steady_clock::now() < end);
}

core::Result<void> WorkerGroup::stop() {
  if (std::exchange(stopped_, true) || pool_ == nullptr) {
    return {};
  }
  stop_.store(true, std::memory_order_release);
  for (const auto& member : members_) {
    if (started_) {
      rte_eal_wait_lcore(Eal::lcore_of_worker(member->index));
    }
  }
  if (housekeeping_.joinable()) {
    housekeeping_.join();
  }
  for (const auto& member : members_) {
    member->worker->drain();
  }
  tap_thread_.reset();
  host_rings_->drain();
  wait_for_sends();
  std::uint32_t kept = 0;
  for (const auto& port : ports_) {
    kept += port->kept_mbufs();
    port->close();
  }
  const std::uint32_t in_use = pool_->in_use();
  if (in_use > kept) {
    return tl::make_unexpected(core::Error{"leaked " + std::to_string(in_use - kept) +
                                           " packet buffers of " + std::to_string(pool_->size())});
  }
  return {};
}

void WorkerGroup::log(Severity severity, const std::string& line) const {
  if (settings_.log) {
    settings_.log(severity, line);
  }
}

}  // namespace sluice::dpdk
