#include "test/support/stepped_group.h"

#include <array>
#include <span>
#include <thread>
#include <utility>

#include "dataplane/pipeline/worker.h"
#include "test/support/map_index.h"

namespace sluice::test {

using pipeline::Counter;
using pipeline::PortIndex;

namespace {

/// Aligned memory for the entries of a table, filled with rubbish.
class EntryMemory {
 public:
  explicit EntryMemory(std::size_t bytes) : lines_((bytes + 63) / 64), bytes_(bytes) {}
  [[nodiscard]] std::span<std::byte> span() noexcept {
    return {reinterpret_cast<std::byte*>(lines_.data()), bytes_};
  }

 private:
  struct alignas(64) Line {
    std::array<std::uint64_t, 8> words;
    Line() { words.fill(0xa5a5a5a5a5a5a5a5); }
  };
  std::vector<Line> lines_;
  std::size_t bytes_;
};

/// A clock that stands until it is moved.
struct TestClock {
  const std::uint64_t* now;
  std::uint64_t now_ns() noexcept { return *now; }
};

using TestWorker =
    pipeline::Worker<InMemoryIo, AnyIndex<core::FlowKey4>, AnyIndex<core::FlowKey6>, TestClock>;

AnyIndex<core::FlowKey4> index4(const SteppedGroupConfig& config) {
  return config.indexes != nullptr ? config.indexes->make4(config.connections)
                                   : AnyIndex<core::FlowKey4>(MapIndex<core::FlowKey4>());
}

AnyIndex<core::FlowKey6> index6(const SteppedGroupConfig& config) {
  return config.indexes != nullptr ? config.indexes->make6(config.connections)
                                   : AnyIndex<core::FlowKey6>(MapIndex<core::FlowKey6>());
}

}  // namespace

struct SteppedGroup::Member {
  Member(FramePool& pool, std::size_t bytes4, std::size_t bytes6, std::size_t steering_bytes)
      : io(pool),
        requests(256),
        memory4(bytes4),
        memory6(bytes6),
        steering(steering_bytes) {}
  InMemoryIo io;
  pipeline::CounterBlock counters;
  pipeline::NeighbourRequestRing requests;
  pipeline::DumpMailbox dumps;
  EntryMemory memory4;
  EntryMemory memory6;
  EntryMemory steering;
  std::unique_ptr<TestWorker> worker;
};

SteppedGroup::SteppedGroup(const SteppedGroupConfig& config)
    : config_(config),
      pool_(config.frames),
      counts_(std::make_unique<pipeline::ConnectionCounts>(config.workers, config.endpoints)),
      publisher_(std::make_unique<pipeline::ViewPublisher>(config.workers, *counts_)),
      loads_(std::make_unique<pipeline::LoadSharing>(*counts_)),
      rings_(std::make_unique<pipeline::HandoverRings>(config.workers, config.ring_size)),
      hops_(std::make_unique<pipeline::NextHopDirectory>(config.next_hops)) {
  pipeline::OwnerMap::Config owner;
  owner.workers = config.workers;
  owner.twist = config.owner_twist;
  owners_ = std::make_unique<pipeline::OwnerMap>(owner);
  for (std::size_t w = 0; w < config.workers; ++w) {
    add_member(w);
  }
  publisher_->set_ports(default_ports());
  publisher_->set_routes(pipeline::RouteTable(
      {{core::Cidr(core::IpAddress{}, 0), PortIndex{0}, std::nullopt},
       {core::Cidr(core::IpAddress(core::Ipv6Address{}), 0), PortIndex{0}, std::nullopt}}));
}

SteppedGroup::~SteppedGroup() = default;

void SteppedGroup::add_member(std::size_t index) {
  core::ConnTableConfig table;
  table.capacity = config_.connections;
  table.hash_seed = config_.hash_seed;
  table.timeouts = config_.timeouts;
  table.half_open_divisor = config_.half_open_divisor;
  auto m = std::make_unique<Member>(pool_, TestWorker::Conns4::memory_bytes(table.capacity),
                                    TestWorker::Conns6::memory_bytes(table.capacity),
                                    pipeline::SteeringCache::memory_bytes(config_.workers,
                                                                          config_.connections));
  pipeline::WorkerConfig worker;
  worker.index = index;
  worker.workers = config_.workers;
  worker.new_flow_budget = config_.new_flow_budget;
  worker.overload_bursts = config_.overload_bursts;
  worker.flood_bursts = config_.flood_bursts;
  worker.pace = config_.pace;
  worker.affinity_pins = config_.affinity_pins;
  worker.service_slots = 1024;
  worker.seed = config_.seed;
  worker.steering_memory = m->steering.span();
  worker.steering_window = config_.steering_window;
  const pipeline::WorkerLinks links{publisher_->cell(), *rings_,     *owners_,    *hops_,
                                    *counts_,           m->counters, m->requests, m->dumps};
  m->worker = std::make_unique<TestWorker>(
      worker, links, m->io, TestWorker::Conns4(table, index4(config_), m->memory4.span()),
      TestWorker::Conns6(table, index6(config_), m->memory6.span()), TestClock{&now_ns_});
  members_.push_back(std::move(m));
}

InMemoryIo& SteppedGroup::io(std::size_t worker) {
  return members_[worker]->io;
}

void SteppedGroup::run(std::size_t worker, const std::atomic<bool>& stop) {
  members_[worker]->worker->run(stop, pipeline::IdleStrategy::kYield,
                                [](pipeline::IdleAction) { std::this_thread::yield(); });
}

void SteppedGroup::drain(std::size_t worker) {
  members_[worker]->worker->drain();
}

std::uint32_t SteppedGroup::capacity() const {
  return members_[0]->worker->conns4().capacity();
}

std::vector<pipeline::PortInfo> SteppedGroup::default_ports() const {
  std::vector<pipeline::PortInfo> ports(config_.ports);
  for (std::size_t p = 0; p < ports.size(); ++p) {
    ports[p].present = true;
    ports[p].mac = *core::parse_mac(kOwnMac);
    ports[p].mac.bytes[4] = static_cast<std::uint8_t>(p);
    const std::string last = std::to_string(11 + p);
    ports[p].addresses = {*core::parse_address("192.0.2." + last),
                          *core::parse_address("fd00:11::" + last)};
    ports[p].ingress = "slc-p" + std::to_string(p);
  }
  return ports;
}

void SteppedGroup::inject(std::size_t worker, const Bytes& frame, std::size_t port,
                          pipeline::Origin origin) {
  members_[worker]->io.inject(static_cast<PortIndex>(port), frame, origin);
}

void SteppedGroup::advance_ms(std::uint64_t ms) {
  now_ns_ += ms * 1'000'000;
  constexpr std::uint64_t kPeriod = std::chrono::nanoseconds(pipeline::LoadSharing::kPeriod).count();
  if (now_ns_ - shared_ns_ >= kPeriod) {
    loads_->share();
    shared_ns_ = now_ns_;
  }
}

bool SteppedGroup::step(std::size_t worker) {
  return members_[worker]->worker->poll_once();
}

void SteppedGroup::settle() {
  for (bool busy = true; busy;) {
    busy = false;
    for (std::size_t w = 0; w < members_.size(); ++w) {
      busy = step(w) || busy;
    }
    if (config_.resolve_neighbours) {
      resolve_requests();
    }
  }
  if (config_.resolve_neighbours) {
    // What waits for a neighbour is looked at once a tick.
    bool held = false;
    for (const auto& m : members_) {
      held = held || m->counters.read(Counter::kHeldNeighbour) != 0;
    }
    if (held) {
      advance_ms(2);
      for (std::size_t w = 0; w < members_.size(); ++w) {
        step(w);
      }
    }
  }
}

std::vector<pipeline::NeighbourRequest> SteppedGroup::take_requests() {
  std::vector<pipeline::NeighbourRequest> all;
  for (const auto& m : members_) {
    pipeline::NeighbourRequest request;
    while (m->requests.pop(&request, 1) == 1) {
      all.push_back(request);
    }
  }
  return all;
}

void SteppedGroup::resolve_requests() {
  for (const pipeline::NeighbourRequest& request : take_requests()) {
    const auto index = hops_->add(request.port, request.address);
    if (index != core::NextHopIndex::kNone) {
      hops_->write(index, pipeline::NextHopWord::make(*core::parse_mac(kPeerMac), request.port,
                                                      pipeline::NeighbourState::kReachable));
    }
  }
}

std::vector<SentFrame> SteppedGroup::exchange(std::size_t worker, const Bytes& frame,
                                              std::size_t port) {
  inject(worker, frame, port);
  settle();
  return take_sent();
}

std::vector<SentFrame> SteppedGroup::take_sent() {
  std::vector<SentFrame> all;
  for (const auto& m : members_) {
    for (SentFrame& f : m->io.take_sent()) {
      all.push_back(std::move(f));
    }
  }
  return all;
}

std::vector<SentFrame> SteppedGroup::take_to_host() {
  std::vector<SentFrame> all;
  for (const auto& m : members_) {
    for (SentFrame& f : m->io.take_to_host()) {
      all.push_back(std::move(f));
    }
  }
  return all;
}

void SteppedGroup::run_ms(std::uint64_t ms, std::uint64_t step_ms) {
  for (std::uint64_t done = 0; done < ms; done += step_ms) {
    advance_ms(step_ms);
    settle();
  }
}

std::uint64_t SteppedGroup::count(Counter c) const {
  std::uint64_t sum = 0;
  for (const auto& m : members_) {
    sum += m->counters.read(c);
  }
  return sum;
}

std::uint64_t SteppedGroup::count(std::size_t worker, Counter c) const {
  return members_[worker]->counters.read(c);
}

pipeline::FrameBalance SteppedGroup::balance() const {
  std::vector<const pipeline::CounterBlock*> blocks;
  for (const auto& m : members_) {
    blocks.push_back(&m->counters);
  }
  return pipeline::frame_balance(blocks);
}

std::string SteppedGroup::balance_error() const {
  const pipeline::FrameBalance b = balance();
  std::size_t offered = 0;
  for (const auto& m : members_) {
    offered += m->io.offered();
  }
  const std::size_t out_of_pool = pool_.size() - pool_.free_count();
  std::string text;
  if (!b.holds()) {
    text += "in " + std::to_string(b.in) + " != out " + std::to_string(b.out) + " + dropped " +
            std::to_string(b.dropped) + " + to host " + std::to_string(b.to_host) + " + held " +
            std::to_string(b.held) + "; ";
  }
  if (out_of_pool != b.held + offered) {
    text += std::to_string(out_of_pool) + " frames are out of the pool, " + std::to_string(b.held) +
            " held and " + std::to_string(offered) + " not received yet";
  }
  return text;
}

std::size_t SteppedGroup::connections() const {
  std::size_t sum = 0;
  for (const auto& m : members_) {
    sum += m->worker->conns4().size() + m->worker->conns6().size();
  }
  return sum;
}

std::vector<pipeline::WorkerStatus> SteppedGroup::workers() const {
  std::vector<pipeline::WorkerStatus> all;
  for (std::size_t w = 0; w < members_.size(); ++w) {
    const auto& gauges = members_[w]->worker->gauges();
    pipeline::WorkerStatus s;
    s.worker = static_cast<std::uint32_t>(w);
    s.running = true;
    s.polls = count(w, Counter::kPolls) + count(w, Counter::kPollsEmpty);
    s.connections4 = gauges.connections4.load();
    s.connections6 = gauges.connections6.load();
    s.connection_capacity = members_[w]->worker->conns4().capacity();
    s.generation = gauges.generation.load();
    all.push_back(s);
  }
  return all;
}

std::vector<pipeline::PortStatus> SteppedGroup::ports() const {
  std::vector<pipeline::PortStatus> all;
  for (std::size_t p = 0; p < config_.ports; ++p) {
    pipeline::PortStatus s;
    s.name = "p" + std::to_string(p);
    s.device = "memory" + std::to_string(p);
    s.driver = "in_memory";
    s.tap = "slc-" + s.name;
    s.queues = static_cast<std::uint32_t>(members_.size());
    s.mtu = 1500;
    s.link_up = true;
    all.push_back(s);
  }
  return all;
}

std::vector<pipeline::CounterValue> SteppedGroup::counters() const {
  std::vector<pipeline::CounterValue> all;
  for (std::size_t c = 0; c < pipeline::kCounters; ++c) {
    pipeline::CounterValue value{
        pipeline::kCounterTable[c].name, pipeline::kCounterTable[c].help, {}};
    for (const auto& m : members_) {
      value.per_worker.push_back(m->counters.read(static_cast<Counter>(c)));
    }
    all.push_back(std::move(value));
  }
  return all;
}

pipeline::EndpointUse SteppedGroup::endpoint_use(core::EndpointId id) const {
  return {counts_->active(id), counts_->total(id)};
}

core::Result<void> SteppedGroup::dump_connections(
    const pipeline::ConnectionFilter& filter,
    const std::function<bool(const pipeline::ConnectionRow&)>& row) {
  std::uint64_t left = filter.limit == 0 ? UINT64_MAX : filter.limit;
  for (std::size_t w = 0; w < members_.size() && left != 0; ++w) {
    const auto wait = [&] {
      step(w);
      return true;
    };
    const auto visit = [&](const pipeline::ConnectionRow& r) {
      return !pipeline::matches(filter, r) || (row(r) && --left != 0);
    };
    if (!pipeline::dump_worker(members_[w]->dumps, wait, visit)) {
      break;
    }
  }
  return {};
}

void SteppedGroup::dump_threads(const std::function<bool(const pipeline::ConnectionRow&)>& row) {
  const auto wait = [] {
    std::this_thread::yield();
    return true;
  };
  for (const auto& m : members_) {
    pipeline::dump_worker(m->dumps, wait, row);
  }
}

core::Capabilities SteppedGroup::capabilities() const {
  return {
      "stepped",
      {core::kAllSchedulers.begin(), core::kAllSchedulers.end()},
      {core::ForwardingMode::kByRule, core::ForwardingMode::kNat, core::ForwardingMode::kFullNat,
       core::ForwardingMode::kDr, core::ForwardingMode::kIpip}};
}

core::Result<core::ApplyReport> SteppedGroup::apply(const core::TablePtr& table) {
  publisher_->apply(table);
  loads_->see(table);
  core::ApplyReport report;
  report.generation = table->generation();
  return report;
}

}  // namespace sluice::test
