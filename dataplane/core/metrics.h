#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/core/net/address.h"

namespace sluice::core {

// Numbers for whoever watches a node: parts of the daemon keep them, a page shows them. Nothing
// here is for the fast path.

enum class MetricKind : std::uint8_t { kCounter, kGauge };

/// Counts durations in buckets. Thread: any.
class DurationHistogram {
 public:
  /// The buckets of most metrics of AD-2: 1 ms, 2 ms, ... 16.384 s.
  DurationHistogram();
  /// @param bounds  upper bounds of the buckets, growing.
  explicit DurationHistogram(std::vector<std::chrono::nanoseconds> bounds);
  void record(std::chrono::nanoseconds duration) noexcept;

  [[nodiscard]] std::size_t buckets() const noexcept { return bounds_.size(); }
  /// Upper bound of a bucket in seconds.
  [[nodiscard]] double bound(std::size_t bucket) const noexcept;
  /// Durations of at most bound(bucket).
  [[nodiscard]] std::uint64_t up_to(std::size_t bucket) const noexcept;
  [[nodiscard]] std::uint64_t count() const noexcept { return up_to(buckets()); }
  [[nodiscard]] double seconds() const noexcept {
    return static_cast<double>(nanoseconds_.load(kRelaxed)) / 1e9;
  }

 private:
  static constexpr std::memory_order kRelaxed = std::memory_order_relaxed;
  const std::vector<std::chrono::nanoseconds> bounds_;
  /// Each without those before it; the last is for what no bound holds.
  std::vector<std::atomic<std::uint64_t>> counts_;
  std::atomic<std::uint64_t> nanoseconds_{0};
};

/// Takes numbers. A metric may be given once for each set of labels.
class MetricVisitor {
 public:
  virtual ~MetricVisitor() = default;
  /// @param labels  as Prometheus writes them, without braces: ip_family="IPv4"; may be empty.
  virtual void number(MetricKind kind, std::string_view name, std::string_view help,
                      std::string_view labels, double value) = 0;
  virtual void durations(std::string_view name, std::string_view help, std::string_view labels,
                         const DurationHistogram& histogram) = 0;
};

/// A part that has numbers. Thread: any.
class MetricSource {
 public:
  virtual ~MetricSource() = default;
  virtual void collect(MetricVisitor& out) const = 0;
};

/// The label of AD-2 that tells families apart.
[[nodiscard]] std::string family_label(Family family);

/// How long syncs of a kernel adapter took (AD-2), of one family or of both in one. Thread: any.
class SyncDurations {
 public:
  void record(bool full, std::chrono::nanoseconds duration) noexcept;
  void collect(MetricVisitor& out, Family family) const;

 private:
  DurationHistogram all_;
  DurationHistogram full_;
  DurationHistogram partial_;
};

}  // namespace sluice::core
