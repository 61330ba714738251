// H-8..H-12 and F87: health follows the oldest change that is not in force.
#include "control/http/health_tracker.h"

#include <gtest/gtest.h>

#include "control/http/health_pages.h"

namespace sluice::http {
namespace {

using std::chrono::seconds;

class HealthTrackerTest : public ::testing::Test {
 protected:
  HealthTrackerTest() { tracker_.set_node(&node_); }
  void advance(seconds by) {
    now_.steady += by;
    now_.wall += by;
  }
  void succeed() { tracker_.succeeded(DataSource::kControlPlane, 7, now_); }
  int healthz() { return healthz_page(tracker_.status(now_)).status; }
  int livez() { return livez_page(tracker_.status(now_)).status; }

  model::Node node_;
  Moment now_{std::chrono::steady_clock::time_point(seconds(1000)),
              std::chrono::system_clock::time_point(seconds(1767225600))};
  HealthTracker tracker_{HealthTracker::Options{}, now_};
};

// F87 a
TEST_F(HealthTrackerTest, BeforeTheFirstSnapshotItIsHealthyForTwoPeriodsAndSaysSo) {
  advance(seconds(59));
  EXPECT_EQ(healthz(), 200);
  EXPECT_NE(healthz_page(tracker_.status(now_)).body.find("\"data\": \"no snapshot\""),
            std::string::npos);
  advance(seconds(1));
  EXPECT_EQ(healthz(), 503);
  EXPECT_EQ(tracker_.status(now_).reason, "no snapshot could be applied in time");
}

// F87 b, H-9
TEST_F(HealthTrackerTest, IdleTimeNeverMakesItUnhealthy) {
  succeed();
  advance(seconds(86400));
  EXPECT_EQ(healthz(), 200);
}

// F87 c, d
TEST_F(HealthTrackerTest, OldestPendingChangeDecidesAndOneSuccessRepairs) {
  succeed();
  advance(seconds(100));
  tracker_.requested(now_);
  advance(seconds(59));
  EXPECT_EQ(livez(), 200);
  advance(seconds(1));
  EXPECT_EQ(livez(), 503);
  succeed();
  EXPECT_EQ(livez(), 200);
}

// F87 e
TEST_F(HealthTrackerTest, NewChangesDoNotResetTheAge) {
  succeed();
  for (int i = 0; i < 60; ++i) {
    tracker_.requested(now_);
    advance(seconds(1));
  }
  EXPECT_EQ(livez(), 503);
}

// F87 f
TEST_F(HealthTrackerTest, StoppedWorkerIsUnhealthyAtOnceWithItsReason) {
  succeed();
  tracker_.set_broken("worker 1 stopped");
  EXPECT_EQ(healthz(), 503);
  EXPECT_NE(livez_page(tracker_.status(now_)).body.find("worker 1 stopped"), std::string::npos);
  tracker_.set_broken("");
  EXPECT_EQ(healthz(), 200);
}

// F87 g
TEST_F(HealthTrackerTest, AnswerTellsVersionAndAgeOfWhatIsInForce) {
  succeed();
  advance(seconds(3600));
  const std::string body = healthz_page(tracker_.status(now_)).body;
  EXPECT_NE(body.find("\"appliedVersion\": 7, \"appliedAgeSeconds\": 3600"), std::string::npos);
}

TEST_F(HealthTrackerTest, OneUnhealthyFamilyIsEnoughAndIsNamed) {
  succeed();
  tracker_.requested(core::Family::kIpv6, now_);
  advance(seconds(60));
  const HealthStatus status = tracker_.status(now_);
  EXPECT_FALSE(status.healthy);
  EXPECT_TRUE(status.families.at(core::Family::kIpv4).healthy);
  EXPECT_FALSE(status.families.at(core::Family::kIpv6).healthy);
  tracker_.succeeded(core::Family::kIpv6, now_);
  EXPECT_TRUE(tracker_.healthy(now_));
}

// H-11
TEST_F(HealthTrackerTest, NodeThatLeavesOrIsUnknownIsNotEligibleButHealthy) {
  succeed();
  model::Node leaving;
  leaving.deleting = true;
  model::Node tainted;
  tainted.taints = {{"dedicated", "gpu", "NoExecute"},
                    {"ToBeDeletedByClusterAutoscaler", "1", "NoSchedule"}};
  const std::vector<const model::Node*> nodes{&leaving, &tainted, nullptr};
  for (const model::Node* node : nodes) {
    tracker_.set_node(node);
    EXPECT_EQ(healthz(), 503);
    EXPECT_EQ(livez(), 200);
  }
}

// H-12
TEST_F(HealthTrackerTest, LastUpdatedIsNowWhenOkElseTheLastUpdate) {
  succeed();
  advance(seconds(5));
  EXPECT_NE(healthz_page(tracker_.status(now_))
                .body.find("\"lastUpdated\": \"2026-01-01T00:00:05.000000000Z\""),
            std::string::npos);
  tracker_.set_node(nullptr);
  EXPECT_NE(healthz_page(tracker_.status(now_))
                .body.find("\"lastUpdated\": \"2026-01-01T00:00:00.000000000Z\""),
            std::string::npos);
}

TEST_F(HealthTrackerTest, LivezDoesNotSpeakOfTheNode) {
  EXPECT_EQ(livez_page(tracker_.status(now_)).body.find("nodeEligible"), std::string::npos);
}

}  // namespace
}  // namespace sluice::http
