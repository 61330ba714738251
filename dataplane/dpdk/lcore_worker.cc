#include "dataplane/dpdk/lcore_worker.h"

#include <ctime>
#include <optional>
#include <string>
#include <utility>

#include <sched.h>
#include <sys/prctl.h>
#include <sys/random.h>

#include <rte_pause.h>

#include "dataplane/dpdk/core_kind.h"
#include "dataplane/dpdk/rte_hash_index.h"

namespace sluice::dpdk {
namespace {

struct MonotonicClock {
  std::uint64_t now_ns() const noexcept {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);  // vDSO: no system call
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(now.tv_nsec);
  }
};

using Store4 = ConnStore<core::Ipv4>;
using Store6 = ConnStore<core::Ipv6>;
using Pipeline = pipeline::Worker<DpdkIo, RteHashIndex<core::FlowKey4>,
                                  RteHashIndex<core::FlowKey6>, MonotonicClock>;

void act(pipeline::IdleAction action) noexcept {
  switch (action) {
    case pipeline::IdleAction::kNone:
      return;
    case pipeline::IdleAction::kPause:
      rte_pause();
      return;
    case pipeline::IdleAction::kYield:
      sched_yield();
      return;
    case pipeline::IdleAction::kSleep: {
      const timespec pause{0, pipeline::Idle::kSleepMicros * 1000L};
      nanosleep(&pause, nullptr);
      return;
    }
  }
}

class LcoreWorkerImpl final : public LcoreWorker {
 public:
  LcoreWorkerImpl(const pipeline::WorkerConfig& config, const pipeline::WorkerLinks& links,
                  const std::vector<IoPort>& ports, rte_mempool* pool, HostRings& rings,
                  Store4 store4, Store6 store6, std::optional<EntryMemory> steering)
      : io_(static_cast<std::uint32_t>(config.index), ports, pool, rings),
        memory4_(std::move(store4.memory)),
        memory6_(std::move(store6.memory)),
        steering_(std::move(steering)),
        worker_(config, links, io_, std::move(store4.table), std::move(store6.table),
                MonotonicClock{}) {}

  bool poll_once() noexcept override { return worker_.poll_once(); }

  void run(const std::atomic<bool>& stop, pipeline::IdleStrategy idle) noexcept override {
    // The default slack of 50 us would double the idle sleep.
    prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    worker_.run(stop, idle, act);
  }

  void drain() noexcept override { worker_.drain(); }

  [[nodiscard]] Numbers numbers() const noexcept override {
    const auto& gauges = worker_.gauges();
    return {gauges.connections4.load(std::memory_order_relaxed),
            gauges.connections6.load(std::memory_order_relaxed), worker_.conns4().capacity(),
            gauges.generation.load(std::memory_order_relaxed)};
  }
  [[nodiscard]] const IoCounters& io_counters() const noexcept override { return io_.counters(); }

 private:
  DpdkIo io_;
  EntryMemory memory4_;
  EntryMemory memory6_;
  std::optional<EntryMemory> steering_;  ///< none for a worker alone
  Pipeline worker_;
};

}  // namespace

std::uint64_t LcoreWorker::random_seed() noexcept {
  std::uint64_t seed = 0;
  if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed)) {
    seed = MonotonicClock{}.now_ns();
  }
  return seed;
}

std::size_t LcoreWorker::memory_bytes(std::uint32_t connections) noexcept {
  return Store4::bytes(connections) + Store6::bytes(connections);
}

std::size_t LcoreWorker::steering_bytes(std::uint32_t workers,
                                        std::uint32_t connections) noexcept {
  return pipeline::SteeringCache::memory_bytes(workers, connections);
}

core::Result<std::unique_ptr<LcoreWorker>> LcoreWorker::create(const LcoreWorkerConfig& config,
                                                               const pipeline::WorkerLinks& links,
                                                               const std::vector<IoPort>& ports,
                                                               rte_mempool* pool,
                                                               HostRings& rings) {
  core::ConnTableConfig table;
  table.capacity = config.connections;
  table.hash_seed = config.hash_seed;
  table.timeouts = config.timeouts;
  const std::string number = std::to_string(config.index);
  auto store4 = Store4::create({"c4w" + number, config.numa_socket}, table);
  if (!store4) {
    return tl::make_unexpected(store4.error());
  }
  auto store6 = Store6::create({"c6w" + number, config.numa_socket}, table);
  if (!store6) {
    return tl::make_unexpected(store6.error());
  }
  pipeline::WorkerConfig worker;
  worker.index = config.index;
  worker.workers = config.workers;
  worker.service_slots = config.service_slots;
  worker.pace = memory_pace(this_core());
  worker.seed = random_seed();
  std::optional<EntryMemory> steering;
  if (const std::size_t bytes = steering_bytes(config.workers, config.connections); bytes != 0) {
    auto memory = EntryMemory::allocate({"stw" + number, config.numa_socket}, bytes,
                                        "workers of flows");
    if (!memory) {
      return tl::make_unexpected(memory.error());
    }
    worker.steering_memory = memory->span();
    steering = std::move(*memory);
  }
  return std::unique_ptr<LcoreWorker>(std::make_unique<LcoreWorkerImpl>(
      worker, links, ports, pool, rings, std::move(*store4), std::move(*store6),
      std::move(steering)));
}

}  // namespace sluice::dpdk
