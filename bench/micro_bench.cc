// The parts one by one, by Google Benchmark: parse, checksum, hash, lookup, pick of every
// scheduler, compile, table swap. `cycles` are core cycles for one item, whatever the clock.

#include <chrono>
#include <ctime>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "bench/clock.h"
#include "bench/traffic.h"
#include "control/compile/compiler.h"
#include "dataplane/core/conn/flow_hash.h"
#include "dataplane/core/fwd/text.h"
#include "dataplane/core/net/parse_fast.h"
#include "dataplane/core/sched/pick.h"
#include "dataplane/pipeline/view_publisher.h"

namespace sluice::bench {
namespace {

/// CPU time of this thread, so that other work on the machine does not count.
double cpu_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

/// Core cycles in a nanosecond.
double core_ghz() {
  const auto began = std::chrono::steady_clock::now();
  const std::uint64_t start = tsc();
  const double per_tick = cycles_per_tick();
  const std::chrono::duration<double, std::nano> passed = std::chrono::steady_clock::now() - began;
  return per_tick * static_cast<double>(tsc() - start) / passed.count();
}

/// Reports core cycles for each of `items` done in one iteration. Made before the loop.
class Cycles {
 public:
  Cycles(benchmark::State& state, std::size_t items)
      : state_(state), items_(items), start_(cpu_ns()) {}
  ~Cycles() {
    const double spent = cpu_ns() - start_;
    const double done = static_cast<double>(state_.iterations()) * static_cast<double>(items_);
    static const double ghz = core_ghz();
    state_.counters["cycles"] = spent * ghz / done;
    state_.SetItemsProcessed(static_cast<std::int64_t>(done));
  }
  Cycles(const Cycles&) = delete;
  Cycles& operator=(const Cycles&) = delete;

 private:
  benchmark::State& state_;
  std::size_t items_;
  double start_;
};

template <class F>
void fill(FrameRing& ring) {
  const FlowSpace<F> space{64'000, 64};
  for (std::uint32_t i = 0; i < FrameRing::kFrames; ++i) {
    ring.put<F>(i, space.forward(i * 251 % space.flows), core::kTcpAck);
  }
}

template <class F>
void parse(benchmark::State& state) {
  FrameRing ring;
  fill<F>(ring);
  core::ParsedFrame parsed;
  const Cycles cycles(state, FrameRing::kFrames);
  for (auto _ : state) {
    for (std::size_t i = 0; i < FrameRing::kFrames; ++i) {
      const pipeline::Packet& p = ring.packet(i);
      core::parse_frame_inline(p.data, p.contiguous, p.total, parsed);
      benchmark::DoNotOptimize(parsed);
    }
  }
}
BENCHMARK(parse<core::Ipv4>)->Name("parse/ipv4");
BENCHMARK(parse<core::Ipv6>)->Name("parse/ipv6");

void checksum(benchmark::State& state) {
  const std::vector<std::uint8_t> data(static_cast<std::size_t>(state.range(0)), 0x5a);
  const Cycles cycles(state, 1);
  for (auto _ : state) {
    benchmark::DoNotOptimize(core::fold(core::sum_bytes(data.data(), data.size())));
  }
}
BENCHMARK(checksum)->Arg(20)->Arg(64)->Arg(1480);

template <class F>
void hash(benchmark::State& state) {
  const FlowSpace<F> space{64'000, 64};
  std::vector<typename F::Key> keys;
  for (std::uint32_t n = 0; n < 256; ++n) {
    keys.push_back(space.forward(n));
  }
  const Cycles cycles(state, keys.size());
  for (auto _ : state) {
    for (const auto& key : keys) {
      benchmark::DoNotOptimize(core::flow_hash(key, 42));
    }
  }
}
BENCHMARK(hash<core::Ipv4>)->Name("hash/ipv4");
BENCHMARK(hash<core::Ipv6>)->Name("hash/ipv6");

core::ServicePort service(core::SchedulerKind kind, std::uint32_t backends) {
  core::ServicePort s;
  s.name = "bench/web";
  s.scheduler = kind;
  for (std::uint32_t n = 0; n < backends; ++n) {
    core::Endpoint e;
    e.address = core::IpAddress(core::Be32::from_host(0x0af40000 + n));
    e.port = 8080;
    e.id = core::EndpointId{n};
    e.weight = static_cast<std::uint16_t>(n % 4 + 1);
    s.endpoints.push_back(e);
    s.cluster.push_back(core::EndpointIndex{n});
  }
  core::plan_picks(s, nullptr);
  return s;
}

std::vector<core::FlowTuple> tuples() {
  std::mt19937 random(1);
  std::vector<core::FlowTuple> all(256);
  for (core::FlowTuple& t : all) {
    t.src = core::IpAddress(core::Be32::from_host(static_cast<std::uint32_t>(random())));
    const auto vip = static_cast<std::uint32_t>(0xcb007100 + random() % 8);
    t.dst = core::IpAddress(core::Be32::from_host(vip));
    t.sport = static_cast<std::uint16_t>(random());
    t.dport = 80;
  }
  return all;
}

/// core::pick() with its dispatch; clients and destinations differ from pick to pick, and what was
/// picked counts as one connection more.
void pick(benchmark::State& state, core::SchedulerKind kind) {
  const auto backends = static_cast<std::uint32_t>(state.range(0));
  const core::ServicePort s = service(kind, backends);
  const std::vector<core::FlowTuple> flows = tuples();
  const auto cells = std::make_unique<core::LoadCell[]>(backends);
  std::mt19937 random(2);
  for (std::uint32_t n = 0; n < backends; ++n) {
    cells[n].own_active = static_cast<std::uint32_t>(200 + random() % 100);
    cells[n].others_active = static_cast<std::int32_t>(random() % 100);
  }
  core::SchedulerState scheduler(1024, 1, 4, 1, core::LoadView({cells.get(), backends}, 4));
  core::Decision d;
  d.verdict = core::FlowVerdict::kForward;
  d.service = &s;
  d.slot = core::ServiceSlot{3};
  d.eligible = s.cluster;
  d.plan = s.cluster_plan.plan.get();
  const Cycles cycles(state, flows.size());
  for (auto _ : state) {
    for (const core::FlowTuple& tuple : flows) {
      const auto chosen = static_cast<std::uint32_t>(core::pick(d, tuple, 0, scheduler));
      auto& own = cells[chosen].own_active;
      own.store(own.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
  }
}

/// A cluster of Services with ten endpoints each, as the publisher compiles it.
class Cluster {
 public:
  explicit Cluster(std::uint32_t services) {
    for (std::uint32_t i = 0; i < services; ++i) {
      model::Service s;
      s.name = {"bench", "s" + std::to_string(i)};
      s.type = "LoadBalancer";
      s.cluster_ip = core::to_string(core::IpAddress(numbered<core::Ipv4>(14, 1 + i)));
      s.cluster_ips = {s.cluster_ip};
      s.ip_families = {"IPv4"};
      s.ports.push_back({"http", "TCP", 80, 0, "", ""});
      s.load_balancer_ingress.push_back(
          {core::to_string(core::IpAddress(numbered<core::Ipv4>(12, 1 + i))), "", std::nullopt});
      state_.services.emplace(s.name, std::move(s));
      auto e = slice(i, 0);
      state_.slices.emplace(e.name, std::move(e));
    }
    config_.node_name = "bench";
  }

  void compile() { compiled_ = compiler_.full(state_, config_, {}); }
  /// Moves one endpoint of a Service.
  void change() {
    model::Delta delta;
    ++changes_;
    delta.slices.push_back(slice(changes_ * 7919 % count(), changes_ % 2));
    const auto held = compiled_;  // as the publisher holds the table in force
    compiled_ = compiler_.update(state_, model::apply(state_, delta), config_, {});
    ids_.release_unused(compiled_->table->generation(), [](core::EndpointId) { return false; });
  }
  [[nodiscard]] const core::TablePtr& table() const { return compiled_->table; }

 private:
  [[nodiscard]] std::uint32_t count() const {
    return static_cast<std::uint32_t>(state_.services.size());
  }
  static model::EndpointSlice slice(std::uint32_t service, std::uint32_t shift) {
    model::EndpointSlice s;
    s.name = {"bench", "s" + std::to_string(service)};
    s.labels["kubernetes.io/service-name"] = s.name.name;
    s.address_type = "IPv4";
    s.ports.push_back({"http", "TCP", 8080});
    for (std::uint32_t e = 0; e < 10; ++e) {
      model::SliceEndpoint endpoint;
      const std::uint32_t n = service * 10 + e + (e == 0 ? shift << 22 : 0);
      endpoint.addresses = {
          core::to_string(core::IpAddress(numbered<core::Ipv4>(13, 1 + n)))};
      s.endpoints.push_back(std::move(endpoint));
    }
    return s;
  }

  model::ClusterState state_;
  compile::NodeConfig config_;
  compile::IdRegistry ids_{{65'536, 1'048'576}};
  compile::Compiler compiler_{compile::Profile::kNftables, ids_};
  decltype(compiler_.full(state_, config_, {})) compiled_;
  std::uint32_t changes_ = 0;
};

void compile_all(benchmark::State& state) {
  Cluster cluster(static_cast<std::uint32_t>(state.range(0)));
  for (auto _ : state) {
    cluster.compile();
  }
}
BENCHMARK(compile_all)->Arg(1'000)->Unit(benchmark::kMillisecond);

void compile_change(benchmark::State& state) {
  Cluster cluster(static_cast<std::uint32_t>(state.range(0)));
  cluster.compile();
  for (auto _ : state) {
    cluster.change();
  }
}
BENCHMARK(compile_change)->Arg(100)->Arg(10'000)->Unit(benchmark::kMicrosecond);

/// A changed table becomes the workers' view, a worker takes it, the old one is freed.
void table_swap(benchmark::State& state) {
  Cluster cluster(static_cast<std::uint32_t>(state.range(0)));
  cluster.compile();
  const core::TablePtr first = cluster.table();
  cluster.change();
  const core::TablePtr second = cluster.table();
  pipeline::ConnectionCounts counts(1, 1'048'576);
  pipeline::ViewPublisher publisher(1, counts);
  publisher.apply(first);
  bool odd = true;
  for (auto _ : state) {
    publisher.apply(odd ? second : first);
    benchmark::DoNotOptimize(publisher.cell().load(0));
    benchmark::DoNotOptimize(publisher.collect());
    odd = !odd;
  }
}
BENCHMARK(table_swap)->Arg(100)->Arg(10'000)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  for (const sluice::core::SchedulerKind kind : sluice::core::kAllSchedulers) {
    const std::string name = "pick/" + std::string(sluice::core::name_of(kind));
    benchmark::RegisterBenchmark(name.c_str(), sluice::bench::pick, kind)->Arg(10)->Arg(1'000);
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
    return 1;
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
