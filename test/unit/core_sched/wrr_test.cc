#include "dataplane/core/sched/wrr.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "test/unit/core_sched/sched_fixture.h"

namespace sluice::core {
namespace {

/// The algorithm as the LVS documentation of "wrr" gives it: one step along the list at a time.
class LvsWrr {
 public:
  explicit LvsWrr(std::vector<std::uint16_t> weights) : weights_(std::move(weights)) {}
  int next() {
    const int n = static_cast<int>(weights_.size());
    const int gcd = std::accumulate(weights_.begin(), weights_.end(), 0,
                                    [](int a, int b) { return std::gcd(a, b); });
    while (true) {
      at_ = (at_ + 1) % n;
      if (at_ == 0) {
        current_ -= gcd;
        if (current_ <= 0) {
          current_ = *std::max_element(weights_.begin(), weights_.end());
        }
      }
      if (weights_[static_cast<std::size_t>(at_)] >= current_) {
        return at_;
      }
    }
  }

 private:
  std::vector<std::uint16_t> weights_;
  int at_ = -1;
  int current_ = 0;
};

std::string letters(const std::vector<int>& picks) {
  std::string out;
  for (const int p : picks) {
    out += static_cast<char>('A' + p);
  }
  return out;
}

int longest_run(const std::vector<int>& picks) {
  int longest = 0;
  for (std::size_t i = 0, run = 0; i < picks.size(); ++i) {
    run = i > 0 && picks[i] == picks[i - 1] ? run + 1 : 1;
    longest = std::max(longest, static_cast<int>(run));
  }
  return longest;
}

// The example of the LVS documentation.
TEST(WeightedRoundRobin, InterleavesAsDocumented) {
  Bench bench(SchedulerKind::kWrr, {4, 3, 2});
  EXPECT_EQ(letters(bench.picks(18)), "AABABCABCAABABCABC");
}

TEST(WeightedRoundRobin, FollowsTheSequenceOfIpvs) {
  std::mt19937 random(7);
  for (int round = 0; round < 100; ++round) {
    const std::uint64_t scale = 1 + random() % 3;
    std::vector<std::uint16_t> weights(1 + random() % 40);
    for (auto& w : weights) {
      w = static_cast<std::uint16_t>((1 + random() % (round % 2 == 0 ? 4 : 60)) * scale);
    }
    Bench bench(SchedulerKind::kWrr, weights);
    LvsWrr oracle(weights);
    for (int i = 0; i < 2000; ++i) {
      ASSERT_EQ(oracle.next(), bench.pick()) << "round " << round << " pick " << i;
    }
  }
}

// Shares are exact over one round from wherever a worker starts.
TEST(WeightedRoundRobin, EveryWorkerGivesExactSharesFromItsOwnPlace) {
  Bench bench(SchedulerKind::kWrr, {10, 9, 8, 1}, 4);
  std::vector<std::string> starts;
  for (std::uint32_t w = 0; w < 4; ++w) {
    const std::vector<int> round = bench.picks(28, w);
    std::map<int, int> count;
    for (const int p : round) {
      ++count[p];
    }
    EXPECT_EQ(count, (std::map<int, int>{{0, 10}, {1, 9}, {2, 8}, {3, 1}})) << w;
    starts.push_back(letters(round).substr(0, 4));
  }
  std::sort(starts.begin(), starts.end());
  EXPECT_TRUE(std::adjacent_find(starts.begin(), starts.end()) == starts.end());
}

// F101: the bound in the header, heaviest - second + 1 (in steps of the gcd).
TEST(WeightedRoundRobin, LongestRunIsTheDocumentedOne) {
  EXPECT_EQ(longest_run(Bench(SchedulerKind::kWrr, {50, 1, 1}).picks(1000)), 50);
  EXPECT_EQ(longest_run(Bench(SchedulerKind::kWrr, {10, 9, 8}).picks(1000)), 2);
  EXPECT_EQ(longest_run(Bench(SchedulerKind::kWrr, {100, 60, 20}).picks(1000)), 3);
}

// F28: the heavy one goes away in mid-round, at each position; whoever has a weight is found.
TEST(WeightedRoundRobin, FindsTheLightOneWhereverTheHeavyOneLeft) {
  for (std::size_t before = 0; before < 4; ++before) {
    Bench bench(SchedulerKind::kWrr, {2, 1});
    bench.picks(before);
    bench.offer({0, 1});
    EXPECT_EQ(bench.picks(3), (std::vector<int>{1, 1, 1})) << before;
    bench.offer({2, 1});
    std::vector<int> round = bench.picks(6);
    EXPECT_EQ(std::count(round.begin(), round.end(), 0), 4) << before;
  }
}

}  // namespace
}  // namespace sluice::core
