#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

namespace sluice::publish {

/// Decides when a sink is next given the wanted table (SY-4). Pure: the caller says what time it
/// is. A first request after a quiet time runs at once; then min_sync_period passes between the end
/// of a run and the next; requests in between become one. A failed run is retried without a new
/// request, after a wait that doubles up to sync_period; a success ends that. Thread: one.
class RateLimiter {
 public:
  using Clock = std::chrono::steady_clock;
  using TimePoint = Clock::time_point;
  using Duration = Clock::duration;

  struct Options {
    Duration min_sync_period{0};
    Duration sync_period{std::chrono::seconds(30)};
    Duration resync_period{0};  ///< run again without a request; 0: never
    /// First wait after a failure; doubles. SY-4 retries after sync_period, which is the longest
    /// wait here.
    Duration first_retry{std::chrono::milliseconds(100)};
  };
  explicit RateLimiter(const Options& options) : options_(options) {}

  void request() { requested_ = true; }
  /// When the next run may start; a time in the past: now. nullopt: not before a request.
  [[nodiscard]] std::optional<TimePoint> next_run() const {
    std::optional<TimePoint> next;
    const auto consider = [&](TimePoint at) { next = next ? std::min(*next, at) : at; };
    if (requested_) {
      consider(TimePoint::min());
    }
    if (retry_at_) {
      consider(*retry_at_);
    }
    if (last_end_ && options_.resync_period > Duration::zero()) {
      consider(*last_end_ + options_.resync_period);
    }
    if (next && last_end_) {
      next = std::max(*next, *last_end_ + options_.min_sync_period);
    }
    return next;
  }
  /// A run starts and takes up every request made so far.
  void started() { requested_ = false; }
  void succeeded(TimePoint now) {
    last_end_ = now;
    retry_at_.reset();
    next_wait_ = Duration::zero();
  }
  void failed(TimePoint now) {
    last_end_ = now;
    next_wait_ = next_wait_ == Duration::zero() ? options_.first_retry : next_wait_ * 2;
    next_wait_ = std::min(next_wait_, options_.sync_period);
    retry_at_ = now + next_wait_;
  }

 private:
  Options options_;
  bool requested_ = false;
  std::optional<TimePoint> last_end_;
  std::optional<TimePoint> retry_at_;
  Duration next_wait_{0};
};

}  // namespace sluice::publish
