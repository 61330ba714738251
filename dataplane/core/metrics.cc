#include "dataplane/core/metrics.h"

#include <algorithm>
#include <utility>

namespace sluice::core {
namespace {

/// 1 ms, 2 ms, ... 16.384 s.
std::vector<std::chrono::nanoseconds> sync_bounds() {
  constexpr int kBuckets = 15;
  std::vector<std::chrono::nanoseconds> bounds;
  for (int i = 0; i < kBuckets; ++i) {
    bounds.emplace_back(std::chrono::milliseconds(std::int64_t{1} << i));
  }
  return bounds;
}

}  // namespace

DurationHistogram::DurationHistogram() : DurationHistogram(sync_bounds()) {}

DurationHistogram::DurationHistogram(std::vector<std::chrono::nanoseconds> bounds)
    : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}

double DurationHistogram::bound(std::size_t bucket) const noexcept {
  return static_cast<double>(bounds_[bucket].count()) / 1e9;
}

void DurationHistogram::record(std::chrono::nanoseconds duration) noexcept {
  const std::chrono::nanoseconds taken = std::max(duration, std::chrono::nanoseconds(0));
  const auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), taken);
  counts_[static_cast<std::size_t>(bucket - bounds_.begin())].fetch_add(1, kRelaxed);
  nanoseconds_.fetch_add(static_cast<std::uint64_t>(taken.count()), kRelaxed);
}

std::uint64_t DurationHistogram::up_to(std::size_t bucket) const noexcept {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i <= bucket; ++i) {
    sum += counts_[i].load(kRelaxed);
  }
  return sum;
}

std::string family_label(Family family) {
  return family == Family::kIpv4 ? "ip_family=\"IPv4\"" : "ip_family=\"IPv6\"";
}

void SyncDurations::record(bool full, std::chrono::nanoseconds duration) noexcept {
  all_.record(duration);
  (full ? full_ : partial_).record(duration);
}

void SyncDurations::collect(MetricVisitor& out, Family family) const {
  const std::string label = family_label(family);
  out.durations("kubeproxy_sync_proxy_rules_duration_seconds", "Duration of each sync.", label,
                all_);
  out.durations("kubeproxy_sync_full_proxy_rules_duration_seconds", "Duration of full syncs.",
                label, full_);
  out.durations("kubeproxy_sync_partial_proxy_rules_duration_seconds",
                "Duration of partial syncs.", label, partial_);
}

}  // namespace sluice::core
