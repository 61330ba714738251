#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "dataplane/core/conn/states.h"
#include "dataplane/core/sink.h"
#include "dataplane/dpdk/dpdk_io.h"
#include "dataplane/pipeline/idle.h"
#include "dataplane/pipeline/worker.h"

namespace sluice::dpdk {

struct LcoreWorkerConfig {
  std::uint32_t index = 0;
  std::uint32_t workers = 1;
  std::uint32_t connections = 1'000'000;  ///< per family
  std::uint32_t service_slots = 16384;
  int numa_socket = -1;
  std::uint64_t hash_seed = 0;  ///< the same for all workers of a group
  core::ConnTimeouts timeouts;
};

/// One worker over DPDK: its I/O layer, its connection tables and the pipeline's Worker over them.
/// The template is instantiated in lcore_worker.cc only.
/// Thread: created by main; poll_once() and run() by the worker's lcore (or a test's thread).
class LcoreWorker {
 public:
  /// Bytes of EAL memory the connection tables of one worker take.
  [[nodiscard]] static std::size_t memory_bytes(std::uint32_t connections) noexcept;
  /// And what it remembers of the flows of others.
  [[nodiscard]] static std::size_t steering_bytes(std::uint32_t workers,
                                                  std::uint32_t connections) noexcept;
  /// From the operating system.
  [[nodiscard]] static std::uint64_t random_seed() noexcept;

  /// @param links, rings, pool  borrowed; outlive the object.
  /// Errors: too little memory, with the number.
  [[nodiscard]] static core::Result<std::unique_ptr<LcoreWorker>> create(
      const LcoreWorkerConfig& config, const pipeline::WorkerLinks& links,
      const std::vector<IoPort>& ports, rte_mempool* pool, HostRings& rings);
  virtual ~LcoreWorker() = default;

  virtual bool poll_once() noexcept = 0;
  /// Polls until `stop`.
  virtual void run(const std::atomic<bool>& stop, pipeline::IdleStrategy idle) noexcept = 0;
  /// Frees what the worker still holds. Thread: any, when no worker of the group runs.
  virtual void drain() noexcept = 0;

  struct Numbers {
    std::uint64_t connections4 = 0;
    std::uint64_t connections6 = 0;
    std::uint64_t capacity = 0;
    std::uint64_t generation = 0;
  };
  /// Thread: any.
  [[nodiscard]] virtual Numbers numbers() const noexcept = 0;
  [[nodiscard]] virtual const IoCounters& io_counters() const noexcept = 0;

 protected:
  LcoreWorker() = default;
};

}  // namespace sluice::dpdk
