// Health of the proxy: rules H-8..H-12 (section 14.2).
#include "control/http/health_tracker.h"

#include <algorithm>

namespace sluice::http {
namespace {

constexpr int kDeadlinePeriods = 2;                                      // H-9
constexpr const char* kLeavingTaint = "ToBeDeletedByClusterAutoscaler";  // H-11

}  // namespace

bool is_eligible(const model::Node* node) {
  return node != nullptr && !node->deleting &&
         std::none_of(node->taints.begin(), node->taints.end(),
                      [](const model::Taint& t) { return t.key == kLeavingTaint; });
}

HealthTracker::HealthTracker(const Options& options, const Moment& start)
    : deadline_(options.sync_period * kDeadlinePeriods), last_success_(start.steady) {
  for (const core::Family family : options.families) {
    families_[family] = {start.steady, start.wall, false};
  }
}

void HealthTracker::mark(State& state, const Moment& now) const {
  if (!state.oldest_pending) {
    state.oldest_pending = now.steady;
  }
}

void HealthTracker::clear(State& state, const Moment& now) {
  state = {std::nullopt, now.wall, true};
  last_success_ = now.steady;
}

void HealthTracker::requested(const Moment& now) {
  const std::lock_guard lock(mutex_);
  for (auto& [family, state] : families_) {
    mark(state, now);
  }
}

void HealthTracker::requested(core::Family family, const Moment& now) {
  const std::lock_guard lock(mutex_);
  mark(families_[family], now);
}

void HealthTracker::succeeded(DataSource source, std::uint64_t version, const Moment& now) {
  const std::lock_guard lock(mutex_);
  for (auto& [family, state] : families_) {
    clear(state, now);
  }
  source_ = source;
  version_ = version;
}

void HealthTracker::succeeded(core::Family family, const Moment& now) {
  const std::lock_guard lock(mutex_);
  clear(families_[family], now);
}

void HealthTracker::set_node(const model::Node* node) {
  const std::lock_guard lock(mutex_);
  node_eligible_ = is_eligible(node);
}

void HealthTracker::set_broken(std::string reason) {
  const std::lock_guard lock(mutex_);
  broken_ = std::move(reason);
}

HealthStatus HealthTracker::status(const Moment& now) const {
  const std::lock_guard lock(mutex_);
  HealthStatus out;
  out.now = now.wall;
  out.node_eligible = node_eligible_;
  out.source = source_;
  out.applied_version = version_;
  out.applied_age = std::chrono::duration_cast<std::chrono::seconds>(now.steady - last_success_);
  out.reason = broken_;
  for (const auto& [family, state] : families_) {
    const bool late = state.oldest_pending && now.steady - *state.oldest_pending >= deadline_;
    if (late && out.reason.empty()) {
      out.reason = state.ever_updated ? "the last change could not be applied in time"
                                      : "no snapshot could be applied in time";
    }
    out.families[family] = {state.last_updated, !late};
    out.last_updated = std::max(out.last_updated, state.last_updated);
  }
  out.healthy = out.reason.empty();
  return out;
}

}  // namespace sluice::http
