#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "test/unit/core_sched/sched_fixture.h"

namespace sluice::core {
namespace {

__extension__ using Wide = unsigned __int128;

/// A candidate as the oracles see it.
struct Server {
  std::uint64_t active;
  std::uint64_t closing;
  std::uint64_t weight;
};

/// First of the least numerator / denominator, compared exactly.
template <class Cost>
int first_least(const std::vector<Server>& servers, Cost&& cost) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < servers.size(); ++i) {
    const auto [a, wa] = cost(servers[i]);
    const auto [b, wb] = cost(servers[best]);
    best = static_cast<Wide>(a) * wb < static_cast<Wide>(b) * wa ? i : best;
  }
  return static_cast<int>(best);
}

using Fraction = std::pair<std::uint64_t, std::uint64_t>;
std::uint64_t overhead(const Server& s) {
  return s.active * 256 + s.closing;
}
int oracle(SchedulerKind kind, const std::vector<Server>& servers) {
  switch (kind) {
    case SchedulerKind::kLc:
      return first_least(servers, [](const Server& s) { return Fraction(overhead(s), 1); });
    case SchedulerKind::kWlc:
      return first_least(servers, [](const Server& s) { return Fraction(overhead(s), s.weight); });
    case SchedulerKind::kNq:
      for (std::size_t i = 0; i < servers.size(); ++i) {
        if (servers[i].active == 0) {
          return static_cast<int>(i);
        }
      }
      [[fallthrough]];
    default:
      return first_least(servers, [](const Server& s) { return Fraction(s.active + 1, s.weight); });
  }
}

class ByLoad : public testing::TestWithParam<SchedulerKind> {
 protected:
  static Bench bench_of(const std::vector<Server>& servers) {
    std::vector<std::uint16_t> weights;
    for (const Server& s : servers) {
      weights.push_back(static_cast<std::uint16_t>(s.weight));
    }
    return Bench(GetParam(), weights);
  }
  static int pick(Bench& bench, const std::vector<Server>& servers) {
    for (std::uint32_t i = 0; i < servers.size(); ++i) {
      bench.set_load(i, static_cast<std::uint32_t>(servers[i].active),
                     static_cast<std::uint32_t>(servers[i].closing));
    }
    return bench.pick();
  }
  static int pick(const std::vector<Server>& servers) {
    Bench bench = bench_of(servers);
    return pick(bench, servers);
  }
};
INSTANTIATE_TEST_SUITE_P(Schedulers, ByLoad,
                         testing::Values(SchedulerKind::kLc, SchedulerKind::kWlc,
                                         SchedulerKind::kSed, SchedulerKind::kNq));

// F29: counts and weights whose products pass 32 bits, against exact arithmetic.
TEST_P(ByLoad, PicksByTheFormulaWithAnyNumbers) {
  std::mt19937_64 random(29);
  const std::uint64_t scales[] = {2, 10, 1000, 100000, 3000000, 0xffffffff};
  for (int round = 0; round < 250; ++round) {
    std::vector<Server> servers(2 + random() % 6);
    for (Server& s : servers) {
      s.weight = 1 + random() % (round % 2 == 0 ? 65535 : 5);
    }
    Bench bench = bench_of(servers);
    for (int n = 0; n < 100; ++n) {
      for (Server& s : servers) {
        const std::uint64_t scale = scales[random() % std::size(scales)];
        s.active = random() % scale;
        s.closing = random() % scale;
      }
      ASSERT_EQ(oracle(GetParam(), servers), pick(bench, servers)) << "round " << round;
    }
  }
}

TEST_P(ByLoad, FirstOfTheListWinsATie) {
  EXPECT_EQ(pick({{5, 1, 2}, {5, 1, 2}, {5, 1, 2}}), 0);
}

// The worked examples that tell the four apart.
TEST_P(ByLoad, TellsTheFourApart) {
  const std::vector<Server> servers = {{3, 0, 4}, {0, 9, 1}, {1, 0, 8}};
  switch (GetParam()) {
    case SchedulerKind::kLc:
      EXPECT_EQ(pick(servers), 1);  // 768, 9, 256
      EXPECT_EQ(pick({{2, 0, 9}, {1, 0, 1}}), 1);
      break;
    case SchedulerKind::kWlc:
      EXPECT_EQ(pick(servers), 1);  // 192, 9, 32
      EXPECT_EQ(pick({{2, 0, 9}, {1, 0, 1}}), 0);
      break;
    case SchedulerKind::kSed:
      EXPECT_EQ(pick(servers), 2);  // 4/4, 1/1, 2/8
      break;
    default:
      EXPECT_EQ(pick(servers), 1);                            // nq: idle
      EXPECT_EQ(pick({{3, 0, 4}, {1, 9, 1}, {1, 0, 8}}), 2);  // none idle: as sed
  }
}

TEST_P(ByLoad, WorkersBeginElsewhereAmongEquals) {
  Bench bench(GetParam(), std::vector<std::uint16_t>(8, 1), 4);
  EXPECT_EQ(bench.pick(0U), 0);
  EXPECT_EQ(bench.pick(1U), 2);
  EXPECT_EQ(bench.pick(2U), 4);
  EXPECT_EQ(bench.pick(3U), 6);
}

// What a worker adds since the last sum counts once for each worker; what ends does, too.
TEST(LoadView, ScalesWhatHappenedSinceTheSum) {
  LoadCell cell;
  const LoadView view({&cell, 1}, 4);
  cell.own_active = 10;
  cell.others_active = 100 - 4 * 10;  // total 100, base 10
  EXPECT_EQ(view.active(EndpointId{0}), 100U);
  cell.own_active = 13;
  EXPECT_EQ(view.active(EndpointId{0}), 112U);
  cell.own_active = 0;
  cell.others_active = 20 - 4 * 10;  // more ended here than anywhere: never below zero
  EXPECT_EQ(view.active(EndpointId{0}), 0U);
  EXPECT_EQ(view.active(EndpointId{7}), 0U);
  cell.own_closing = 5;
  EXPECT_EQ(view.overhead(EndpointId{0}), 20U);
}

}  // namespace
}  // namespace sluice::core
