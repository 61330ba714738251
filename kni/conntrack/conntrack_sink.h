#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "dataplane/core/metrics.h"
#include "kni/conntrack/conntrack.h"

namespace sluice::kni {

/// Reads by any thread.
struct ConntrackCounters {
  std::atomic<std::uint64_t> passes{0};
  std::atomic<std::uint64_t> removed_v4{0};
  std::atomic<std::uint64_t> removed_v6{0};
  std::atomic<std::uint64_t> failed{0};  ///< flows that could not be removed, and passes
};

/// A kernel adapter with the removal of stale UDP flows behind each successful apply that changed
/// the endpoints of a Service with UDP (CT-1); the first apply counts as such a change. A pass that
/// fails is told and counted, and is no failure of the apply; the next apply has one again.
/// Thread: one, but counters.
class ConntrackSink : public core::TableSink, public core::MetricSource {
 public:
  using Warn = std::function<void(const std::string&)>;
  using Clock = std::chrono::steady_clock;

  /// @param sink  borrowed; outlives this. @param warn  takes a line for the log; may be empty.
  ConntrackSink(core::TableSink& sink, std::unique_ptr<Conntrack> conntrack, Warn warn)
      : sink_(sink), conntrack_(std::move(conntrack)), warn_(std::move(warn)) {}

  [[nodiscard]] core::Capabilities capabilities() const override { return sink_.capabilities(); }
  core::Result<core::ApplyReport> apply(const core::TablePtr& table) override;
  core::Result<void> cleanup() override { return sink_.cleanup(); }

  [[nodiscard]] const ConntrackCounters& counters() const noexcept { return counters_; }
  /// With how full the kernel's table of flows is. Thread: any.
  void collect(core::MetricVisitor& out) const override;

 private:
  bool remove_stale(const core::ForwardingTable& table);

  core::TableSink& sink_;
  std::unique_ptr<Conntrack> conntrack_;
  Warn warn_;
  ConntrackCounters counters_;
  core::DurationHistogram durations_;  ///< of passes, which are over both families
  core::TablePtr applied_;
  bool again_ = false;  ///< the last pass failed
};

}  // namespace sluice::kni
