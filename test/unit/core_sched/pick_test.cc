#include "dataplane/core/sched/pick.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "dataplane/core/fwd/text.h"
#include "test/unit/core_sched/sched_fixture.h"

namespace sluice::core {
namespace {

class EveryScheduler : public testing::TestWithParam<SchedulerKind> {};
INSTANTIATE_TEST_SUITE_P(Pick, EveryScheduler, testing::ValuesIn(kAllSchedulers),
                         [](const auto& one) { return std::string(name_of(one.param)); });

TEST_P(EveryScheduler, GivesNoneWithoutCandidates) {
  Bench bench(GetParam());
  EXPECT_EQ(bench.pick(), -1);
  bench.offer({0, 0, 0});
  EXPECT_EQ(bench.pick(), -1);
}

// F18, F28, F77: weight 0 takes no new flow, by no scheduler; whoever is left does.
TEST_P(EveryScheduler, NeverPicksWeightZero) {
  Bench bench(GetParam(), {3, 0, 1, 0, 65535});
  for (std::uint16_t n = 0; n < 500; ++n) {
    const int got = bench.pick(Bench::flow("198.51.100." + std::to_string(n % 250), n));
    EXPECT_TRUE(got == 0 || got == 2 || got == 4) << got;
  }
  bench.offer({0, 0, 0, 1, 0});
  EXPECT_EQ(bench.pick(), 3);
}

TEST_P(EveryScheduler, SurvivesAnyChangeOfTheListBetweenTwoPicks) {
  Bench bench(GetParam(), {2, 1});
  const std::vector<std::vector<std::uint16_t>> lists = {
      {1, 2},
      {5},
      {7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 14},
      {3, 9},
      {2, 65535}};
  for (int round = 0; round < 200; ++round) {
    bench.offer(lists[static_cast<std::size_t>(round) % lists.size()]);
    for (int n = 0; n < round % 7; ++n) {
      ASSERT_GE(bench.pick(), 0);
    }
  }
}

TEST_P(EveryScheduler, ServesASlotBeyondTheConfiguredBound) {
  Bench bench(GetParam(), {1, 1});
  Decision d = bench.decision();
  d.slot = ServiceSlot{100000};
  SchedulerState state(8, 0, 1, 1);
  EXPECT_NE(pick(d, Bench::flow("198.51.100.1", 1), 0, state), EndpointIndex::kNone);
}

// EP-9. 100,000 picks of 10: one share has a standard deviation of 95; 500 is beyond five of them.
TEST(Random, IsUniformWhateverTheWeights) {
  Bench bench(SchedulerKind::kRandom, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  std::vector<int> count(10);
  for (const int i : bench.picks(100000)) {
    ++count[static_cast<std::size_t>(i)];
  }
  for (const int c : count) {
    EXPECT_NEAR(10000, c, 500);
  }
}

// Oracle: the probabilities themselves, read out of the alias table column by column.
TEST(WeightedRandom, TableGivesEachItsShareExactly) {
  for (const std::vector<std::uint16_t>& weights : std::vector<std::vector<std::uint16_t>>{
           {1}, {1, 1}, {3, 6, 4}, {65535, 1}, {1, 65535, 7, 7}}) {
    Bench bench(SchedulerKind::kWrandom, weights);
    std::vector<double> share(weights.size());
    const auto& alias = bench.plan().alias;
    for (std::size_t column = 0; column < alias.size(); ++column) {
      const double keep = (alias[column].keep == 0xffffffff ? 0x1p32 : alias[column].keep) / 0x1p32;
      share[column] += keep / static_cast<double>(alias.size());
      share[alias[column].other] += (1 - keep) / static_cast<double>(alias.size());
    }
    double sum = 0;
    for (const std::uint16_t w : weights) {
      sum += w;
    }
    for (std::size_t i = 0; i < weights.size(); ++i) {
      EXPECT_NEAR(share[i], weights[i] / sum, 1e-9) << i;
    }
  }
}

// 130,000 picks, weights 3:6:4: standard deviations below 180.
TEST(WeightedRandom, SharesFollowTheWeights) {
  Bench bench(SchedulerKind::kWrandom, {3, 6, 4});
  std::vector<int> count(3);
  for (const int i : bench.picks(130000)) {
    ++count[static_cast<std::size_t>(i)];
  }
  EXPECT_NEAR(30000, count[0], 900);
  EXPECT_NEAR(60000, count[1], 900);
  EXPECT_NEAR(40000, count[2], 900);
}

TEST(SchedulerState, WorkersDrawDifferentNumbers) {
  SchedulerState first(8, 0, 2, 42);
  SchedulerState second(8, 1, 2, 42);
  SchedulerState again(8, 0, 2, 42);
  EXPECT_NE(first.next_random(), second.next_random());
  SchedulerState repeat(8, 0, 2, 42);
  EXPECT_EQ(again.next_random(), repeat.next_random());
}

TEST(RoundRobin, TakesEachInTurn) {
  Bench bench(SchedulerKind::kRr, {9, 1, 1, 1});
  EXPECT_EQ((std::vector<int>{0, 1, 2, 3, 0, 1, 2, 3}), bench.picks(8));
}

TEST(RoundRobin, KeepsATurnForEachServiceAndList) {
  Bench bench(SchedulerKind::kRr, {1, 1, 1, 1});
  SchedulerState state(8, 0, 1, 1);
  const FlowTuple tuple = Bench::flow("198.51.100.1", 1);
  Decision d = bench.decision();
  EXPECT_EQ(pick(d, tuple, 0, state), EndpointIndex{0});
  Decision other = d;
  other.slot = ServiceSlot{4};
  EXPECT_EQ(pick(other, tuple, 0, state), EndpointIndex{0});
  Decision local = d;
  local.reason = DecisionReason::kLocalPolicy;
  EXPECT_EQ(pick(local, tuple, 0, state), EndpointIndex{0});
  EXPECT_EQ(pick(d, tuple, 0, state), EndpointIndex{1});
}

// F35: 8 workers, 16 candidates, 2 flows each: none gets more than 3; 1,600 flows: 100 each.
TEST(RoundRobin, WorkersStartAtDifferentPlaces) {
  Bench bench(SchedulerKind::kRr, std::vector<std::uint16_t>(16, 1), 8);
  std::vector<int> count(16);
  const auto add = [&](std::size_t n, std::uint32_t worker) {
    for (const int i : bench.picks(n, worker)) {
      ++count[static_cast<std::size_t>(i)];
    }
  };
  for (std::uint32_t w = 0; w < 8; ++w) {
    add(2, w);
  }
  EXPECT_LE(*std::max_element(count.begin(), count.end()), 3);
  for (std::uint32_t w = 0; w < 8; ++w) {
    add(198, w);
  }
  for (const int c : count) {
    EXPECT_NEAR(100, c, 1);
  }
}

}  // namespace
}  // namespace sluice::core
