#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "control/compile/compile.h"
#include "control/compile/id_registry.h"
#include "control/model/model.h"
#include "control/publish/sink_runner.h"
#include "control/publish/standing.h"
#include "control/publish/table_maker.h"
#include "dataplane/core/metrics.h"
#include "dataplane/core/sink.h"
#include "dataplane/pipeline/worker_view.h"

namespace sluice::publish {

// Theory of operation
//
// One control thread owns the cluster state, the compiler and its ids. replace(), update() and
// set_host_state() hand it a command and wait for the answer; a burst of waiting commands is stored
// first and compiled once. Each sink has a thread of its own with a rate limiter of its own (SY-4):
// the control thread leaves the newest table in the sink's slot, the sink thread takes it when its
// limiter allows. So a slow sink never delays another, and a table that was overtaken is skipped.
//
// A sink is always given the whole wanted table, and the slot is emptied only by a successful
// apply: a failure loses nothing (F57). Three values are never mixed: no snapshot yet (version 0,
// nothing is applied, SY-1), a snapshot without Services (an empty table is applied), and no
// effective change (nothing is compiled, a counter moves, F64).

/// One receiver of tables and its pace.
struct SinkSlot {
  core::TableSink* sink = nullptr;               ///< borrowed, never null; outlives the Publisher
  std::chrono::milliseconds min_sync_period{0};  ///< 0 for workers, 1 s for kernel modes
  std::chrono::milliseconds sync_period{30000};  ///< longest wait before a failed apply is retried
  std::chrono::milliseconds resync_period{0};    ///< apply again without a change; 0: never
};

/// Takes cluster states and changes, compiles, applies to every sink, retries.
/// Thread: every public call may come from any thread but a sink's own.
class Publisher {
 public:
  struct Options {
    compile::NodeConfig node;
    compile::Profile profile = compile::Profile::kNftables;
    compile::IdRegistry::Limits id_limits;
    /// How often ids of destinations that left are looked at (F63).
    std::chrono::milliseconds id_release_period{1000};
    /// How often objects that failed by an error of ours are tried again (F61).
    std::chrono::milliseconds retry_period{30000};
    /// Another compiler in tests; empty: the real one.
    std::function<std::unique_ptr<TableCompiler>(compile::IdRegistry&)> make_compiler;
    /// The time, for what EndpointSlices say of theirs. Empty: the system clock.
    std::function<std::chrono::system_clock::time_point()> now;
    /// Unix milliseconds: where versions start, so that a node that lost its state never reuses
    /// one. Empty: the system clock.
    std::function<std::uint64_t()> first_version;
  };

  /// @param view  counts connections per endpoint so that ids are given back late enough; null: ids
  /// are given back when no table uses them.
  Publisher(Options options, std::vector<SinkSlot> sinks, pipeline::WorkerView* view);
  ~Publisher();  ///< stops
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  /// Starts the threads. Once.
  void start();
  /// Ends the threads after the apply they are in. Sinks keep their last table.
  void stop();

  /// What rtnetlink says; a change is compiled at once. May be called before start().
  void set_host_state(compile::HostState host);

  /// Takes a state kept from an earlier run: applied like a snapshot, but a control plane is still
  /// awaited. No effect once a snapshot was received.
  void restore(model::ClusterState state);

  /// Makes `next` the cluster state. Waits for compile, not for the sinks.
  /// @param if_version  refuse unless the current version is this (0: no snapshot yet).
  tl::expected<Accepted, Refused> replace(model::ClusterState next,
                                          std::optional<std::uint64_t> if_version = std::nullopt);
  /// Applies upserts and deletes. @param base  version the delta is against; absent: the current.
  tl::expected<Accepted, Refused> update(model::Delta delta,
                                         std::optional<std::uint64_t> base = std::nullopt);

  using StatePtr = std::shared_ptr<const model::ClusterState>;
  /// The received state; shared and immutable. Null before the first snapshot. Copies are made on
  /// the caller's thread, but for the first and the first after a replace().
  [[nodiscard]] StatePtr state() const;
  /// What concerns one Service (compile::part_for()): cheap, for explain. Null as above.
  [[nodiscard]] StatePtr state_of(const model::ObjectName& service) const;
  /// As given at the start.
  [[nodiscard]] const Options& options() const;
  /// The newest compiled table. Null before the first snapshot.
  [[nodiscard]] core::TablePtr table() const;
  [[nodiscard]] Status status() const;
  /// Not ok: a thread of ours ended or a worker stopped. The process should end with an error.
  [[nodiscard]] Health health() const;

  [[nodiscard]] Standing standing() const;
  /// Waits until standing() differs from `seen`. @param give_up  asked now and then; true ends the
  /// wait. @return false: it does not.
  bool wait_standing_change(const Standing& seen, std::chrono::milliseconds timeout,
                            const std::function<bool()>& give_up) const;

  /// From what made endpoints change until it was in force.
  [[nodiscard]] const core::DurationHistogram& programming_durations(core::Family family) const;

  /// Waits until every sink has applied `version` or a later one.
  /// @param give_up  asked now and then; true ends the wait. @return whether it came so far.
  bool wait_applied(std::uint64_t version, std::chrono::milliseconds timeout,
                    const std::function<bool()>& give_up) const;
  /// Waits until the state's version differs from `version`. @return false after `timeout`.
  bool wait_version_change(std::uint64_t version, std::chrono::milliseconds timeout) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::publish
