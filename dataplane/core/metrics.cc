#include "dataplane/core/metrics.h"

#include <algorithm>

namespace sluice::core {
namespace {

constexpr std::int64_t kFirstBound = 1'000'000;  // ns; each bound is twice the one before

}  // namespace

double DurationHistogram::bound(std::size_t bucket) noexcept {
  return static_cast<double>(kFirstBound << bucket) / 1e9;
}

void DurationHistogram::record(std::chrono::nanoseconds duration) noexcept {
  const std::int64_t ns = std::max<std::int64_t>(duration.count(), 0);
  std::size_t bucket = 0;
  while (bucket < kBuckets && ns > kFirstBound << bucket) {
    ++bucket;
  }
  buckets_[bucket].fetch_add(1, kRelaxed);
  nanoseconds_.fetch_add(static_cast<std::uint64_t>(ns), kRelaxed);
}

std::uint64_t DurationHistogram::up_to(std::size_t bucket) const noexcept {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i <= bucket; ++i) {
    sum += buckets_[i].load(kRelaxed);
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
