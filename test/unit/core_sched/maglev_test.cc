#include "dataplane/core/sched/maglev.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include "test/unit/core_sched/sched_fixture.h"

namespace sluice::core {
namespace {

using Table = std::vector<std::uint16_t>;

/// The pseudocode of the paper (section 3.4), with whole permutations.
Table paper_populate(const std::vector<MaglevOrder>& orders, std::uint32_t m) {
  std::vector<std::vector<std::uint32_t>> permutation;
  for (const MaglevOrder& o : orders) {
    std::vector<std::uint32_t> p(m);
    for (std::uint64_t j = 0; j < m; ++j) {
      p[j] = static_cast<std::uint32_t>((o.offset + j * o.skip) % m);
    }
    permutation.push_back(std::move(p));
  }
  std::vector<std::size_t> next(orders.size(), 0);
  std::vector<int> entry(m, -1);
  for (std::uint32_t n = 0; true;) {
    for (std::size_t i = 0; i < orders.size(); ++i) {
      std::uint32_t c = permutation[i][next[i]];
      while (entry[c] >= 0) {
        c = permutation[i][++next[i]];
      }
      entry[c] = static_cast<int>(i);
      ++next[i];
      if (++n == m) {
        return Table(entry.begin(), entry.end());
      }
    }
  }
}

std::vector<MaglevOrder> orders_of(std::uint32_t n, std::uint32_t size, std::uint32_t first = 0) {
  std::vector<MaglevOrder> orders;
  for (std::uint32_t i = 0; i < n; ++i) {
    const IpAddress address(Be32::from_host(0x0af40000 + first + i));
    orders.push_back(maglev_order(address, 8080, 1, size));
  }
  return orders;
}

std::vector<int> slots_of(const Table& table, std::size_t n) {
  std::vector<int> count(n);
  for (const std::uint16_t slot : table) {
    ++count[slot];
  }
  return count;
}

// Table 1 of the paper: three backends, seven slots, before and after B1 leaves.
TEST(Maglev, MakesTheTableOfThePaper) {
  const MaglevOrder b0{3, 4, 1};
  const MaglevOrder b1{0, 2, 1};
  const MaglevOrder b2{3, 1, 1};
  EXPECT_EQ(maglev_table(std::vector<MaglevOrder>{b0, b1, b2}, 7), (Table{1, 0, 1, 0, 2, 2, 0}));
  EXPECT_EQ(maglev_table(std::vector<MaglevOrder>{b0, b2}, 7), (Table{0, 0, 0, 0, 1, 1, 1}));
}

TEST(Maglev, FillsAsThePseudocodeOfThePaper) {
  for (const std::uint32_t size : {7U, 1021U, 4093U}) {
    for (const std::uint32_t n : {1U, 2U, 3U, 7U, 50U}) {
      const auto orders = orders_of(n, size);
      EXPECT_EQ(maglev_table(orders, size), paper_populate(orders, size)) << size << " " << n;
    }
  }
}

TEST(Maglev, OrdersVisitEverySlot) {
  for (const std::uint32_t size : kMaglevSizes) {
    for (const MaglevOrder& o : orders_of(20, size)) {
      EXPECT_LT(o.offset, size);
      EXPECT_GE(o.skip, 1U);
      EXPECT_LT(o.skip, size);
      EXPECT_EQ(std::gcd(o.skip, size), 1U);
    }
  }
}

// At 100 slots for each candidate and more.
TEST(Maglev, ImbalanceIsBelowOnePercent) {
  for (const std::uint32_t size : kMaglevSizes) {
    for (const std::uint32_t n : {7U, 10U, size / 100}) {
      const std::vector<int> count = slots_of(maglev_table(orders_of(n, size), size), n);
      const double ideal = double{1} * size / n;
      for (const int c : count) {
        EXPECT_LT(std::abs(c - ideal) / ideal, 0.01) << size << " " << n;
      }
    }
  }
}

/// Of the slots that were not of the one that left, the percentage that has another owner now.
double moved_of_the_others(const Table& with, const Table& without, std::uint16_t left) {
  int others = 0;
  int moved = 0;
  for (std::size_t s = 0; s < with.size(); ++s) {
    if (with[s] != left) {
      const std::uint16_t expected =
          static_cast<std::uint16_t>(with[s] > left ? with[s] - 1 : with[s]);
      ++others;
      moved += without[s] != expected ? 1 : 0;
    }
  }
  return 100.0 * moved / others;
}

// F10. Removing each in turn; adding it back is the same step in the other direction.
TEST(Maglev, OneOfNMovesUnderTwoPercentOfTheOthers) {
  for (const std::uint32_t n : {7U, 10U, 11U, 100U}) {
    double worst = 0;
    double sum = 0;
    int count = 0;
    for (std::uint32_t cluster = 0; cluster < (n < 100 ? 10 : 1); ++cluster) {
      const auto all = orders_of(n, kMaglevDefaultSize, cluster * 256);
      const Table with = maglev_table(all, kMaglevDefaultSize);
      for (std::uint32_t left = 0; left < n; ++left) {
        auto rest = all;
        rest.erase(rest.begin() + left);
        const double moved = moved_of_the_others(with, maglev_table(rest, kMaglevDefaultSize),
                                                 static_cast<std::uint16_t>(left));
        worst = std::max(worst, moved);
        sum += moved;
        ++count;
      }
    }
    std::printf("N = %3u: one of N moves %.2f %% of the others, at worst %.2f %%\n", n, sum / count,
                worst);
    EXPECT_LT(worst, 2.0) << n;
  }
}

TEST(Maglev, SharesFollowTheWeights) {
  const auto slots = [](std::vector<std::uint32_t> weights) {
    std::vector<MaglevOrder> orders = orders_of(static_cast<std::uint32_t>(weights.size()), 16381);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      orders[i].weight = weights[i];
    }
    return slots_of(maglev_table(orders, 16381), weights.size());
  };
  const auto near = [](double ideal, int got) { EXPECT_NEAR(ideal, got, 1 + ideal / 100); };
  const std::vector<int> three = slots({3, 6, 4});
  near(16381 * 3 / 13.0, three[0]);
  near(16381 * 6 / 13.0, three[1]);
  near(16381 * 4 / 13.0, three[2]);
  const std::vector<int> close = slots({1000, 1001, 0});
  near(16381 * 1000 / 2001.0, close[0]);
  EXPECT_EQ(close[2], 0);
  const std::vector<int> apart = slots({65535, 1});
  EXPECT_GE(apart[1], 1);
  EXPECT_LE(apart[1], 2);
  EXPECT_EQ(maglev_table(orders_of(0, 1021), 1021), Table(1021, kMaglevNobody));
}

TEST(Maglev, MoreCandidatesThanSlotsEndWithTheLastOnes) {
  const Table table = maglev_table(orders_of(2000, 1021), 1021);
  EXPECT_EQ(*std::max_element(table.begin(), table.end()), 1020);
}

TEST(Maglev, SlotOfAHashIsInTheTable) {
  EXPECT_EQ(maglev_slot(0, 16381), 0U);
  EXPECT_EQ(maglev_slot(~0ULL, 16381), 16380U);
  EXPECT_EQ(maglev_slot(1ULL << 63, 16381), 8190U);
}

}  // namespace
}  // namespace sluice::core
