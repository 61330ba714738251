#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "control/model/model.h"
#include "dataplane/core/metrics.h"

namespace sluice::publish {

/// How long it took from what made endpoints change until the change was in force: SL-10 and
/// network_programming_duration_seconds of AD-2. An EndpointSlice says when that was in an
/// annotation; only times later than this object's beginning count, once each. Thread: any.
class TriggerTimes {
 public:
  using Time = std::chrono::system_clock::time_point;
  static constexpr const char* kAnnotation = "endpoints.kubernetes.io/last-change-trigger-time";

  explicit TriggerTimes(Time began);

  /// @param changes  have made `state`. Of a Service of which slices only went
  /// nothing is awaited any more.
  void take(const model::ChangeSet& changes, const model::ClusterState& state);
  /// Every sink has `version` in force.
  void in_force(std::uint64_t version, Time now);

  /// Changes awaited at once; while there are so many (a sink that fails for long) others do not
  /// count.
  static constexpr std::size_t kMostAwaited = 4096;

  [[nodiscard]] const core::DurationHistogram& durations(core::Family family) const noexcept {
    return family == core::Family::kIpv4 ? v4_ : v6_;
  }

 private:
  struct Awaited {
    model::ObjectName service;
    core::Family family;
    Time trigger;
    std::uint64_t version;  ///< the first that has the change
  };

  const Time began_;
  std::mutex mutex_;
  std::vector<Awaited> awaited_;
  core::DurationHistogram v4_;
  core::DurationHistogram v6_;
};

/// RFC 3339, with or without a fraction of a second. nullopt: it is none.
[[nodiscard]] std::optional<TriggerTimes::Time> parse_rfc3339(std::string_view text);

}  // namespace sluice::publish
