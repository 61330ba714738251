#include "bench/change_rig.h"

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cstring>

#include "dataplane/pipeline/view_publisher.h"
#include "dataplane/pipeline/worker.h"
#include "test/support/map_index.h"
#include "test/support/packet_builder.h"

namespace sluice::bench {
namespace {

constexpr std::uint32_t kConnections = 8192;
// The control side may have no other core. The pause is in the figures.
constexpr std::chrono::microseconds kPause{50};
// A new endpoint is hit by 5 polls in 6; a worker that has packets does not pause.
constexpr unsigned kPollsOfNewView = 3;
constexpr std::size_t kIpHeader = 14;
constexpr std::size_t kDestination = 30;
constexpr std::size_t kSourcePort = 34;

struct RealClock {
  std::uint64_t now_ns() noexcept {
    return static_cast<std::uint64_t>(ProbeIo::Clock::now().time_since_epoch().count());
  }
};

using ChangeWorker = pipeline::Worker<ProbeIo, test::MapIndex<core::FlowKey4>,
                                      test::MapIndex<core::FlowKey6>, RealClock>;

struct alignas(64) Line {
  std::array<std::byte, 64> bytes;
};

std::span<std::byte> span_of(std::vector<Line>& lines) {
  return {reinterpret_cast<std::byte*>(lines.data()), lines.size() * sizeof(Line)};
}

void set_ip_checksum(std::uint8_t* ip) noexcept {
  ip[10] = ip[11] = 0;
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < 20; i += 2) {
    sum += static_cast<std::uint32_t>(ip[i] << 8 | ip[i + 1]);
  }
  sum = (sum & 0xffff) + (sum >> 16);
  sum = ~((sum & 0xffff) + (sum >> 16)) & 0xffff;
  ip[10] = static_cast<std::uint8_t>(sum >> 8);
  ip[11] = static_cast<std::uint8_t>(sum);
}

pipeline::OwnerMap::Config one_worker() {
  pipeline::OwnerMap::Config owner;
  owner.workers = 1;
  return owner;
}

}  // namespace

ProbeIo::ProbeIo() {
  const auto frame =
      test::PacketBuilder().eth().ipv4("11.0.0.1", "12.0.0.1").tcp(1024, 80, test::kSyn).build();
  std::copy_n(frame.begin(), std::min(frame.size(), kFrame), model_.begin());
}

void ProbeIo::set(const Probe& probe, std::size_t flows) {
  flows_.store(std::min(flows, kFlowsPerPoll));
  std::uint32_t vip = 0;
  std::uint32_t backend = 0;
  std::memcpy(&vip, probe.vip.data(), 4);
  std::memcpy(&backend, probe.backend.data(), 4);
  hit_ns_.store(0);
  target_.store(std::uint64_t{vip} << 32 | backend);
}

std::optional<ProbeIo::Clock::time_point> ProbeIo::take() {
  const std::int64_t ns = hit_ns_.load();
  if (ns == 0) {
    return std::nullopt;
  }
  return Clock::time_point(Clock::duration(ns));
}

std::size_t ProbeIo::receive(pipeline::Packet* out, std::size_t n) noexcept {
  const std::uint64_t target = target_.load(std::memory_order_acquire);
  if (target == 0) {
    return 0;
  }
  const auto vip = static_cast<std::uint32_t>(target >> 32);
  n = std::min(n, flows_.load(std::memory_order_relaxed));
  for (std::size_t i = 0; i < n; ++i) {
    std::uint8_t* const frame = buffers_[i].data() + kHeadroom;
    std::memcpy(frame, model_.data(), model_.size());
    std::memcpy(frame + kDestination, &vip, 4);
    set_ip_checksum(frame + kIpHeader);
    next_port_ = static_cast<std::uint16_t>(next_port_ == 65535 ? 1024 : next_port_ + 1);
    frame[kSourcePort] = static_cast<std::uint8_t>(next_port_ >> 8);
    frame[kSourcePort + 1] = static_cast<std::uint8_t>(next_port_);
    pipeline::Packet p;
    p.handle = &buffers_[i];
    p.data = frame;
    p.contiguous = p.total = static_cast<std::uint32_t>(model_.size());
    p.port = pipeline::PortIndex{0};
    p.origin = pipeline::Origin::kWire;
    out[i] = p;
  }
  return n;
}

void ProbeIo::transmit(pipeline::PortIndex, const pipeline::Packet& packet) noexcept {
  std::uint32_t destination = 0;
  std::memcpy(&destination, packet.data + kDestination, 4);
  const std::uint64_t target = target_.load(std::memory_order_relaxed);
  if (target != 0 && destination == static_cast<std::uint32_t>(target)) {
    hit_ns_.store(Clock::now().time_since_epoch().count());
    target_.store(0);
  }
}

struct ChangeRig::Parts {
  Parts(std::uint32_t slots, std::uint32_t endpoints)
      : counts(1, endpoints),
        publisher(1, counts),
        owners(one_worker()),
        memory4((ChangeWorker::Conns4::memory_bytes(kConnections) + 63) / 64),
        memory6((ChangeWorker::Conns6::memory_bytes(kConnections) + 63) / 64) {
    core::ConnTableConfig table;
    table.capacity = kConnections;
    table.hash_seed = 1;
    pipeline::WorkerConfig config;
    config.overload_bursts = UINT32_MAX;
    config.service_slots = slots;
    const pipeline::WorkerLinks links{publisher.cell(), rings,    owners,   hops,
                                      counts,           counters, requests, dumps};
    worker = std::make_unique<ChangeWorker>(
        config, links, io,
        ChangeWorker::Conns4(table, test::MapIndex<core::FlowKey4>(), span_of(memory4)),
        ChangeWorker::Conns6(table, test::MapIndex<core::FlowKey6>(), span_of(memory6)),
        RealClock{});
    wire();
  }

  /// One port and a gateway that is resolved.
  void wire() {
    const pipeline::PortIndex port{0};
    const auto gateway = *core::parse_address("192.0.2.254");
    pipeline::PortInfo info;
    info.present = true;
    info.mac = *core::parse_mac(test::kOwnMac);
    info.addresses = {*core::parse_address("192.0.2.11")};
    info.ingress = "bench0";
    publisher.set_ports({info});
    publisher.set_routes(pipeline::RouteTable({{core::Cidr(core::IpAddress{}, 0), port, gateway}}));
    hops.write(hops.add(port, gateway),
               pipeline::NextHopWord::make(*core::parse_mac(test::kPeerMac), port,
                                           pipeline::NeighbourState::kReachable));
  }

  ProbeIo io;
  pipeline::ConnectionCounts counts;
  pipeline::ViewPublisher publisher;
  pipeline::HandoverRings rings{1, 64};
  pipeline::OwnerMap owners;
  pipeline::NextHopDirectory hops{1024};
  pipeline::CounterBlock counters;
  pipeline::NeighbourRequestRing requests{256};
  pipeline::DumpMailbox dumps;
  std::vector<Line> memory4;
  std::vector<Line> memory6;
  std::unique_ptr<ChangeWorker> worker;
};

ChangeRig::ChangeRig(std::uint32_t slots, std::uint32_t endpoints)
    : parts_(std::make_unique<Parts>(slots, endpoints)) {
  thread_ = std::thread([this] { run(); });
}

ChangeRig::~ChangeRig() {
  stop_ = true;
  thread_.join();
}

/// Under SCHED_RR before the other threads: a node's workers have cores of their own.
void ChangeRig::precede() {
  sched_param param{};
  int policy = SCHED_OTHER;
  if (pthread_getschedparam(pthread_self(), &policy, &param) == 0 && policy == SCHED_RR) {
    ++param.sched_priority;
    pthread_setschedparam(pthread_self(), policy, &param);
  }
}

void ChangeRig::run() {
  precede();
  prctl(PR_SET_TIMERSLACK, 1);  // else a pause is 50 us longer
  const auto& generation = parts_->worker->gauges().generation;
  unsigned polls = 0;  // without a pause
  while (!stop_.load(std::memory_order_relaxed)) {
    const auto before = generation.load(std::memory_order_relaxed);
    parts_->worker->poll_once();
    if (generation.load(std::memory_order_relaxed) != before) {
      polls = kPollsOfNewView;
    }
    if (polls > 0) {
      --polls;
    } else {
      std::this_thread::sleep_for(kPause);
    }
  }
  parts_->worker->drain();
}

ProbeIo& ChangeRig::io() {
  return parts_->io;
}

core::Result<core::ApplyReport> ChangeRig::apply(const core::TablePtr& table) {
  const std::lock_guard lock(mutex_);
  parts_->publisher.apply(table);
  return core::ApplyReport{table->generation(), {}};
}

std::vector<pipeline::WorkerStatus> ChangeRig::workers() const {
  pipeline::WorkerStatus status;
  status.running = true;
  status.generation = parts_->worker->gauges().generation.load();
  return {status};
}

pipeline::EndpointUse ChangeRig::endpoint_use(core::EndpointId id) const {
  return {parts_->counts.active(id), 0};
}

}  // namespace sluice::bench
