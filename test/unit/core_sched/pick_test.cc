#include "dataplane/core/sched/pick.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

namespace sluice::core {
namespace {

class PickTest : public testing::Test {
 protected:
  void offer(std::uint32_t n, SchedulerKind kind) {
    service_.scheduler = kind;
    service_.endpoints.resize(n);
    service_.cluster.clear();
    for (std::uint32_t i = 0; i < n; ++i) {
      service_.cluster.push_back(EndpointIndex{i});
    }
    decision_.verdict = FlowVerdict::kForward;
    decision_.service = &service_;
    decision_.slot = ServiceSlot{3};
    decision_.eligible = service_.cluster;
  }
  std::uint32_t pick_one(SchedulerState& state) {
    return static_cast<std::uint32_t>(pick(decision_, decision_.eligible, 0, state));
  }
  ServicePort service_;
  Decision decision_;
};

TEST_F(PickTest, NothingEligibleGivesNone) {
  offer(0, SchedulerKind::kRandom);
  SchedulerState state(8, 0, 1, 1);
  EXPECT_EQ(EndpointIndex::kNone, pick(decision_, decision_.eligible, 0, state));
}

TEST_F(PickTest, SchedulerThatIsNotBuiltGivesNoneAndNoOther) {
  offer(3, SchedulerKind::kWlc);
  SchedulerState state(8, 0, 1, 1);
  EXPECT_FALSE(scheduler_is_built(SchedulerKind::kWlc));
  EXPECT_EQ(EndpointIndex::kNone, pick(decision_, decision_.eligible, 0, state));
}

TEST_F(PickTest, PicksAmongTheGivenPartOnly) {
  offer(5, SchedulerKind::kRandom);
  SchedulerState state(8, 0, 1, 1);
  const std::vector<EndpointIndex> part = {EndpointIndex{1}, EndpointIndex{4}};
  for (int i = 0; i < 200; ++i) {
    const auto got = pick(decision_, part, 0, state);
    EXPECT_TRUE(std::find(part.begin(), part.end(), got) != part.end());
  }
}

// EP-9. 100,000 picks of 10: one share has a standard deviation of 95; 500 is beyond five of them.
TEST_F(PickTest, RandomIsUniform) {
  offer(10, SchedulerKind::kRandom);
  SchedulerState state(8, 0, 1, 42);
  std::vector<int> count(10);
  for (int i = 0; i < 100000; ++i) {
    ++count[pick_one(state)];
  }
  for (const int c : count) {
    EXPECT_NEAR(10000, c, 500);
  }
}

TEST_F(PickTest, WorkersDrawDifferentNumbers) {
  SchedulerState first(8, 0, 2, 42);
  SchedulerState second(8, 1, 2, 42);
  SchedulerState again(8, 0, 2, 42);
  EXPECT_NE(first.next_random(), second.next_random());
  SchedulerState repeat(8, 0, 2, 42);
  EXPECT_EQ(again.next_random(), repeat.next_random());
}

TEST_F(PickTest, RoundRobinTakesEachInTurn) {
  offer(4, SchedulerKind::kRr);
  SchedulerState state(8, 0, 1, 1);
  std::vector<std::uint32_t> got;
  for (int i = 0; i < 8; ++i) {
    got.push_back(pick_one(state));
  }
  EXPECT_EQ((std::vector<std::uint32_t>{0, 1, 2, 3, 0, 1, 2, 3}), got);
}

TEST_F(PickTest, RoundRobinKeepsATurnForEachService) {
  offer(4, SchedulerKind::kRr);
  SchedulerState state(8, 0, 1, 1);
  pick_one(state);
  decision_.slot = ServiceSlot{4};
  EXPECT_EQ(0U, pick_one(state));
  decision_.slot = ServiceSlot{3};
  EXPECT_EQ(1U, pick_one(state));
}

TEST_F(PickTest, SlotBeyondTheConfiguredBoundIsHarmless) {
  offer(4, SchedulerKind::kRr);
  decision_.slot = ServiceSlot{100000};
  SchedulerState state(8, 0, 1, 1);
  EXPECT_LT(pick_one(state), 4U);
}

// F35: 8 workers, 16 candidates, 2 flows each: none gets more than 3; 1,600 flows: 100 each, +-10
// %.
TEST_F(PickTest, WorkersStartRoundRobinAtDifferentPlaces) {
  offer(16, SchedulerKind::kRr);
  std::vector<SchedulerState> workers;
  for (std::uint32_t w = 0; w < 8; ++w) {
    workers.emplace_back(8, w, 8, 1);
  }
  std::vector<int> count(16);
  for (auto& worker : workers) {
    ++count[pick_one(worker)];
    ++count[pick_one(worker)];
  }
  EXPECT_LE(*std::max_element(count.begin(), count.end()), 3);
  for (auto& worker : workers) {
    for (int i = 0; i < 198; ++i) {
      ++count[pick_one(worker)];
    }
  }
  for (const int c : count) {
    EXPECT_NEAR(100, c, 10);
  }
}

}  // namespace
}  // namespace sluice::core
