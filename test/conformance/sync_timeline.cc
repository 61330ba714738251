#include "test/conformance/sync_timeline.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "control/publish/rate_limiter.h"

namespace sluice::conformance {
namespace {

using publish::RateLimiter;
using TimePoint = RateLimiter::TimePoint;
using Duration = RateLimiter::Duration;

/// Whole microseconds, so that decimal fractions add up.
Duration to_duration(double seconds) {
  return std::chrono::microseconds(std::llround(seconds * 1e6));
}

double to_seconds(TimePoint at) {
  return std::chrono::duration<double>(at.time_since_epoch()).count();
}

class Timeline {
 public:
  explicit Timeline(const YAML::Node& sync)
      : limiter_(options_of(sync)),
        until_(to_duration(sync["until"].as<double>())),
        takes_(to_duration(sync["runDuration"].as<double>())),
        failures_(sync["failures"].as<std::vector<std::size_t>>()) {
    for (const YAML::Node& seconds : sync["requests"]) {
      requests_.emplace_back(to_duration(seconds.as<double>()));
    }
  }

  std::vector<double> play() {
    while (now_ <= until_) {
      take_requests();
      const auto wanted = limiter_.next_run();
      if (wanted && *wanted <= now_) {
        run();
      } else {
        now_ = std::min(wanted.value_or(TimePoint::max()), next_request());
      }
    }
    return runs_;
  }

 private:
  static RateLimiter::Options options_of(const YAML::Node& sync) {
    const Duration retry = to_duration(sync["retryInterval"].as<double>());
    return {.min_sync_period = to_duration(sync["minSyncPeriod"].as<double>()),
            .sync_period = retry,
            .resync_period = to_duration(sync["maxInterval"].as<double>()),
            .first_retry = retry};
  }

  [[nodiscard]] TimePoint next_request() const {
    return taken_ < requests_.size() ? requests_[taken_] : TimePoint::max();
  }

  void take_requests() {
    while (next_request() <= now_) {
      limiter_.request();
      ++taken_;
    }
  }

  void run() {
    limiter_.started();
    const bool fails = std::count(failures_.begin(), failures_.end(), runs_.size()) > 0;
    runs_.push_back(to_seconds(now_));
    now_ += takes_;
    fails ? limiter_.failed(now_) : limiter_.succeeded(now_);
  }

  RateLimiter limiter_;
  TimePoint now_{};
  TimePoint until_;
  Duration takes_;
  std::vector<TimePoint> requests_;
  std::size_t taken_ = 0;
  std::vector<std::size_t> failures_;
  std::vector<double> runs_;
};

}  // namespace

std::vector<double> play_timeline(const YAML::Node& sync) {
  return Timeline(sync).play();
}

}  // namespace sluice::conformance
