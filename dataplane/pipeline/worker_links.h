#pragma once

// What a worker is given.

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/core/conn/conn_table.h"
#include "dataplane/pipeline/connection_counts.h"
#include "dataplane/pipeline/counters.h"
#include "dataplane/pipeline/dump.h"
#include "dataplane/pipeline/handover.h"
#include "dataplane/pipeline/next_hop_directory.h"
#include "dataplane/pipeline/owner.h"
#include "dataplane/pipeline/worker_tables.h"

namespace sluice::pipeline {

/// Monotonic nanoseconds; one call per poll.
template <class T>
concept WorkerClock = requires(T clock) {
  { clock.now_ns() }
  noexcept->std::same_as<std::uint64_t>;
};

/// How much a worker asks memory for at once. A core has only so many places for lines on their
/// way: more at once wait for each other, and what else is asked for waits behind them. Which
/// serves a core best: dpdk/core_kind.h.
struct MemoryPace {
  /// Cache lines of entries that are asked for before their packets' turn.
  std::uint32_t lines_ahead = 20;
  /// Flows, 1 to kBurst, whose lookups go together. Less than kBurst: what they read first is asked
  /// for together too, else for each flow when it is parsed.
  std::uint32_t group = kBurst;
};

struct WorkerConfig {
  std::size_t index = 0;                ///< of this worker
  std::size_t workers = 1;              ///< in the group
  /// Flows created in a poll under overload. Each takes about 2,200 cycles, a hit 150 to 250: these
  /// take no longer than a burst of hits, and more would take it from known connections.
  std::uint32_t new_flow_budget = 4;
  std::uint32_t overload_bursts = 4;    ///< full receive bursts in a row that mean overload
  std::uint32_t flood_bursts = 64;      ///< so many: a flood, one new flow a poll
  std::uint32_t service_slots = 16384;  ///< scheduler cursors, Services that can have affinity
  std::uint32_t affinity_pins = 65536;  ///< clients and service ports remembered; 128 bytes each
  MemoryPace pace;
  std::uint64_t seed = 1;               ///< of the random choices
  /// SteeringCache::memory_bytes() or nothing; the worker's own, outlives it.
  std::span<std::byte> steering_memory;
  std::uint32_t steering_window = 1024;  ///< frames after which it is judged whether asking it pays
};

/// What a worker shares with its group. All borrowed, all outlive the worker. The last four are
/// this worker's own. The connection tables of a group have one hash seed: a hash goes along when a
/// packet is handed over.
struct WorkerLinks {
  TablesCell& tables;
  HandoverRings& rings;
  const OwnerMap& owners;
  const NextHopDirectory& hops;
  ConnectionCounts& counts;
  CounterBlock& counters;
  NeighbourRequestRing& requests;
  DumpMailbox& dumps;
};

/// Numbers that status shows. Written once per poll with work and read by any thread.
struct WorkerGauges {
  std::atomic<std::uint64_t> connections4{0};
  std::atomic<std::uint64_t> connections6{0};
  std::atomic<std::uint64_t> generation{0};
};

/// A connection that has idled out with its port held (kHeld) still counts as an open one: nobody
/// told the counts.
[[nodiscard]] constexpr bool counts_as_closing(core::ConnState state) noexcept {
  return core::in_states(state, core::kClosingStates & ~core::state_bit(core::ConnState::kHeld));
}

/// Told by the connection tables of every entry that goes.
struct ConnReleaser {
  ConnectionCounts& counts;
  CounterBlock& counters;
  std::size_t worker;
  template <class Hot>
  void released(core::EntryIndex, const Hot& entry, const core::ColdEntry&,
                core::ReleaseReason why) noexcept {
    counts.closed(worker, entry.endpoint, counts_as_closing(entry.state));
    if (why == core::ReleaseReason::kExpired) {
      counters.add(Counter::kConnExpired);
    } else if (why != core::ReleaseReason::kRemoved) {
      counters.add(Counter::kConnEvicted);
    }
  }
};

}  // namespace sluice::pipeline
