#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "control/publish/rate_limiter.h"
#include "control/publish/table_maker.h"
#include "dataplane/core/sink.h"

namespace sluice::publish {

/// Objects that changed since the start, each as often as it did.
struct ChangeTotals {
  std::uint64_t services = 0;
  std::uint64_t endpoint_slices = 0;
  bool operator==(const ChangeTotals&) const = default;
};

/// A table and the state it stands for.
struct Edition {
  core::TablePtr table;       ///< null: none
  std::uint64_t version = 0;  ///< of the cluster state
  HealthPorts health_ports;
  ChangeTotals changes;  ///< that are in it
  bool operator==(const Edition&) const = default;
};

struct SinkStatus {
  std::string name;
  std::uint64_t wanted_version = 0;   ///< cluster state version of the newest table
  std::uint64_t applied_version = 0;  ///< 0: nothing yet
  std::uint64_t wanted_generation = 0;
  std::uint64_t applied_generation = 0;  ///< acknowledged table
  std::uint64_t applies = 0;             ///< successful
  std::uint64_t failures = 0;
  std::string last_error;  ///< "" after a success
  std::chrono::system_clock::time_point last_queued;   ///< an apply was asked for; epoch: never
  std::chrono::system_clock::time_point last_success;  ///< epoch: never
  bool alive = true;       ///< false: its thread ended, health fails
  std::vector<core::Unsupported> unsupported;
};

/// Brings the newest table to one sink, on a thread of its own and at the sink's own pace. The
/// wanted table stays until an apply of it succeeded, so a failure loses nothing (F57).
/// Thread: want(), start(), stop() the publisher; status() any.
class SinkRunner {
 public:
  /// @param on_progress  called after every apply, without a lock held.
  SinkRunner(core::TableSink& sink, const RateLimiter::Options& pace,
             std::function<void()> on_progress);
  ~SinkRunner();  ///< stops
  SinkRunner(const SinkRunner&) = delete;
  SinkRunner& operator=(const SinkRunner&) = delete;

  void start();
  /// Waits for the apply it is in.
  void stop();
  /// `edition` replaces whatever was wanted. A table that is in force already costs no apply.
  /// @param edition  has a table.
  void want(Edition edition);
  [[nodiscard]] SinkStatus status() const;
  /// What the sink has in force.
  [[nodiscard]] Edition applied() const;

 private:
  void run();
  void run_until_stopped();
  void apply_once(std::unique_lock<std::mutex>& lock);

  core::TableSink& sink_;
  std::function<void()> on_progress_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  RateLimiter limiter_;
  Edition wanted_;
  Edition applied_;
  SinkStatus status_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace sluice::publish
