#include "control/publish/rate_limiter.h"

#include <gtest/gtest.h>

namespace sluice::publish {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const RateLimiter::TimePoint kStart{std::chrono::hours(1)};

bool due(const RateLimiter& limiter, RateLimiter::TimePoint now) {
  const auto next = limiter.next_run();
  return next && *next <= now;
}

TEST(RateLimiter, DoesNothingWithoutARequest) {
  const RateLimiter limiter({});
  EXPECT_EQ(limiter.next_run(), std::nullopt);
}

// SY-4
TEST(RateLimiter, FirstRequestAfterIdleRunsAtOnce) {
  RateLimiter limiter({.min_sync_period = seconds(1)});
  limiter.request();
  EXPECT_TRUE(due(limiter, kStart));
  limiter.started();
  limiter.succeeded(kStart);
  limiter.request();
  EXPECT_TRUE(due(limiter, kStart + seconds(5)));
}

// SY-4
TEST(RateLimiter, WaitsMinSyncPeriodFromTheEndOfARun) {
  RateLimiter limiter({.min_sync_period = seconds(1)});
  limiter.request();
  limiter.started();
  limiter.succeeded(kStart + milliseconds(300));
  limiter.request();
  EXPECT_FALSE(due(limiter, kStart + milliseconds(1299)));
  EXPECT_TRUE(due(limiter, kStart + milliseconds(1300)));
}

// SY-4
TEST(RateLimiter, RequestsInBetweenBecomeOne) {
  RateLimiter limiter({.min_sync_period = seconds(1)});
  limiter.request();
  limiter.started();
  limiter.request();  // while it runs
  limiter.request();
  limiter.succeeded(kStart);
  limiter.started();
  limiter.succeeded(kStart + seconds(1));
  EXPECT_EQ(limiter.next_run(), std::nullopt);
}

// SY-4, F57: a failed run comes again without a new request, later each time, never later than
// syncPeriod.
TEST(RateLimiter, RetriesAFailureWithDoublingWaitsUpToSyncPeriod) {
  RateLimiter limiter({.sync_period = milliseconds(500)});
  limiter.request();
  auto now = kStart;
  for (const auto wait : {100, 200, 400, 500, 500}) {
    limiter.started();
    limiter.failed(now);
    ASSERT_EQ(limiter.next_run(), now + milliseconds(wait));
    now += milliseconds(wait);
  }
}

// SY-4
TEST(RateLimiter, ANewRequestComesBeforeTheRetry) {
  RateLimiter limiter({});
  limiter.request();
  limiter.started();
  limiter.failed(kStart);
  limiter.request();
  EXPECT_TRUE(due(limiter, kStart));
}

// SY-4
TEST(RateLimiter, SuccessCancelsTheRetryAndItsWait) {
  RateLimiter limiter({});
  limiter.request();
  limiter.started();
  limiter.failed(kStart);
  limiter.started();
  limiter.succeeded(kStart + seconds(1));
  EXPECT_EQ(limiter.next_run(), std::nullopt);
  limiter.request();
  limiter.started();
  limiter.failed(kStart + seconds(2));
  EXPECT_EQ(limiter.next_run(), kStart + seconds(2) + milliseconds(100));
}

TEST(RateLimiter, ARetryAlsoWaitsMinSyncPeriod) {
  RateLimiter limiter({.min_sync_period = seconds(1)});
  limiter.request();
  limiter.started();
  limiter.failed(kStart);
  EXPECT_EQ(limiter.next_run(), kStart + seconds(1));
}

// SY-4: without triggers a run comes every maxInterval.
TEST(RateLimiter, RunsAgainAfterResyncPeriod) {
  RateLimiter limiter({.resync_period = std::chrono::minutes(1)});
  EXPECT_EQ(limiter.next_run(), std::nullopt);
  limiter.request();
  limiter.started();
  limiter.succeeded(kStart);
  EXPECT_EQ(limiter.next_run(), kStart + std::chrono::minutes(1));
}

}  // namespace
}  // namespace sluice::publish
