#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "dataplane/core/sched/hash_slots.h"
#include "test/unit/core_sched/sched_fixture.h"

namespace sluice::core {
namespace {

std::string client(std::uint32_t n) {
  return "198." + std::to_string(n >> 16 & 0xff) + "." + std::to_string(n >> 8 & 0xff) + "." +
         std::to_string(n & 0xff);
}

std::string identity(const Endpoint& e) {
  return to_string(e.address, e.port);
}

/// Identity that each slot of the plan leads to: what is equal on all nodes.
std::vector<std::string> owners(Bench& bench) {
  std::vector<std::string> out;
  for (const std::uint16_t place : bench.plan().slots) {
    out.push_back(identity(bench.service().endpoint(bench.service().cluster[place])));
  }
  return out;
}

class ByHash : public testing::TestWithParam<SchedulerKind> {
 protected:
  Bench bench_{GetParam(), std::vector<std::uint16_t>(7, 1)};
};
INSTANTIATE_TEST_SUITE_P(Schedulers, ByHash,
                         testing::Values(SchedulerKind::kMh, SchedulerKind::kSh,
                                         SchedulerKind::kDh));

// F10: 20 orders of the list, other internal ids.
TEST_P(ByHash, TableDependsOnIdentitiesOnly) {
  const std::vector<std::string> wanted = owners(bench_);
  std::mt19937 random(1);
  for (int round = 0; round < 20; ++round) {
    auto& endpoints = bench_.service().endpoints;
    std::shuffle(endpoints.begin(), endpoints.end(), random);
    for (Endpoint& e : endpoints) {
      e.id = EndpointId{static_cast<std::uint32_t>(random() % 1000)};
    }
    bench_.renew();
    EXPECT_EQ(owners(bench_), wanted);
  }
}

// F18: weight 0 and back leaves the table as it was; in between it has no slot.
TEST_P(ByHash, FlapLeavesTheTableAsItWas) {
  bench_.offer({1, 1, 1});
  const std::vector<std::string> before = owners(bench_);
  const std::string flapping = identity(bench_.service().endpoints[0]);
  bench_.offer({0, 1, 1});
  const std::vector<std::string> during = owners(bench_);
  EXPECT_EQ(std::count(during.begin(), during.end(), flapping), 0);
  bench_.offer({1, 1, 1});
  EXPECT_EQ(owners(bench_), before);
}

// F18: 3, 6 and 4 of 13 within 1 % of the slots; dh knows no weights.
TEST_P(ByHash, SharesFollowTheWeightsWhereTheSchedulerHasThem) {
  bench_.offer({3, 6, 4});
  std::map<std::string, double> share;
  for (const std::string& owner : owners(bench_)) {
    share[owner] += 1.0 / 16381;
  }
  const bool weighted = GetParam() != SchedulerKind::kDh;
  EXPECT_NEAR(share["10.0.0.1:8080"], weighted ? 3 / 13.0 : 1 / 3.0, 0.001);
  EXPECT_NEAR(share["10.0.0.2:8080"], weighted ? 6 / 13.0 : 1 / 3.0, 0.001);
  EXPECT_NEAR(share["10.0.0.3:8080"], weighted ? 4 / 13.0 : 1 / 3.0, 0.001);
}

// F30: three ports of one address are three endpoints; one that goes moves its own share.
TEST_P(ByHash, PortsOfOneAddressAreDifferentEndpoints) {
  bench_.offer({1, 1, 1});
  for (std::uint16_t i = 0; i < 3; ++i) {
    bench_.service().endpoints[i].address = *parse_address("10.244.1.21");
    bench_.service().endpoints[i].port = static_cast<std::uint16_t>(8080 + i);
  }
  bench_.renew();
  const auto place = [&](std::uint32_t n) {
    const std::string other = client(n);
    return GetParam() == SchedulerKind::kDh ? bench_.pick(Bench::flow("198.51.100.1", 1, other))
                                            : bench_.pick(Bench::flow(other, 1));
  };
  std::vector<int> before;
  std::vector<int> count(3);
  for (std::uint32_t n = 0; n < 10000; ++n) {
    before.push_back(place(n));
    ++count[static_cast<std::size_t>(before.back())];
  }
  for (const int c : count) {
    EXPECT_NEAR(c, 10000 / 3.0, 300);
  }
  bench_.service().endpoints[1].weight = 0;
  bench_.renew();
  int moved = 0;
  for (std::uint32_t n = 0; n < 10000; ++n) {
    moved += before[n] != 1 && place(n) != before[n] ? 1 : 0;
  }
  EXPECT_LT(moved, 200);
}

TEST_P(ByHash, SizeOfTheTableIsThatOfTheService) {
  EXPECT_EQ(bench_.plan().slots.size(), 16381U);
  bench_.service().maglev_size = 1021;
  bench_.renew();
  EXPECT_EQ(bench_.plan().slots.size(), 1021U);
}

TEST_P(ByHash, PickNeedsNoStateAndIsTheSameEverywhere) {
  Bench elsewhere(GetParam(), std::vector<std::uint16_t>(7, 1), 4);
  for (std::uint16_t n = 0; n < 200; ++n) {
    const FlowTuple tuple = Bench::flow(client(n * 77U), n, "192.0.2." + std::to_string(n % 250));
    const int here = bench_.pick(tuple);
    EXPECT_EQ(elsewhere.pick(tuple, n % 4U), here);
    EXPECT_EQ(pick_by_hash(bench_.decision(), tuple),
              EndpointIndex{static_cast<std::uint32_t>(here)});
  }
  Bench other(SchedulerKind::kRr, {1});
  EXPECT_EQ(pick_by_hash(other.decision(), Bench::flow("198.51.100.1", 1)), std::nullopt);
}

// Nobody may change it unawares: every flow of a cluster would move.
TEST(ClientHash, IsTheSameInEveryVersion) {
  EXPECT_EQ(client_hash(*parse_address("198.51.100.7"), 0), 0x79d6f93f21833d7aU);
  EXPECT_EQ(client_hash(*parse_address("198.51.100.7"), 4711), 0x0fed2cebd3696f02U);
  EXPECT_EQ(client_hash(*parse_address("2001:db8::7"), 4711), 0x995804dace7ae415U);
  const MaglevOrder order = maglev_order(*parse_address("10.244.1.21"), 8080, 1, 16381);
  EXPECT_EQ(order.offset, 11191U);
  EXPECT_EQ(order.skip, 13637U);
}

int different_endpoints(Bench& bench) {
  std::map<int, int> seen;
  for (std::uint16_t port = 1000; port < 1100; ++port) {
    ++seen[bench.pick(Bench::flow("198.51.100.1", port))];
  }
  return static_cast<int>(seen.size());
}

// F53: with affinity the client address alone decides; without it mh-port spreads one client.
TEST(HashFlags, PortOfTheClientCountsWithTheFlagUnlessAffinityHolds) {
  for (const SchedulerKind kind : {SchedulerKind::kMh, SchedulerKind::kSh}) {
    Bench bench(kind, std::vector<std::uint16_t>(7, 1));
    EXPECT_EQ(different_endpoints(bench), 1);
    bench.service().scheduler_flags = kSchedPort;
    EXPECT_EQ(different_endpoints(bench), 7);
    bench.service().affinity_seconds = 60;
    EXPECT_EQ(different_endpoints(bench), 1);
  }
  Bench by_destination(SchedulerKind::kDh, std::vector<std::uint16_t>(7, 1));
  by_destination.service().scheduler_flags = kSchedPort;
  EXPECT_EQ(different_endpoints(by_destination), 1);
}

TEST(HashFlags, FallbackMovesTheFlowsOfTheOneThatIsAwayAndNoOthers) {
  Bench bench(SchedulerKind::kMh, std::vector<std::uint16_t>(7, 1));
  bench.service().scheduler_flags = kSchedFallback;
  bench.renew();
  const std::vector<std::string> before = owners(bench);
  bench.service().endpoints[2].ready = false;
  bench.service().endpoints[5].weight = 0;
  bench.renew();
  const std::vector<std::string> during = owners(bench);
  const std::string away[] = {"10.0.0.3:8080", "10.0.0.6:8080"};
  std::map<std::string, int> heirs;
  for (std::size_t s = 0; s < before.size(); ++s) {
    if (before[s] == away[0] || before[s] == away[1]) {
      ++heirs[during[s]];
    } else {
      EXPECT_EQ(during[s], before[s]);
    }
  }
  EXPECT_EQ(heirs.size(), 5U);  // shared out, not all to one
  for (const auto& [heir, slots] : heirs) {
    EXPECT_NEAR(slots, 2 * 16381 / 7 / 5, 150) << heir;
  }
  bench.service().endpoints[2].ready = true;
  bench.service().endpoints[5].weight = 1;
  bench.renew();
  EXPECT_EQ(owners(bench), before);
}

// One of 200 is left, of weight 1 among 65535: bounded work, and every slot is served.
TEST(HashFlags, FallbackToALastLightOneServesEverySlot) {
  std::vector<std::uint16_t> weights(200, 65535);
  weights[77] = 1;
  Bench bench(SchedulerKind::kMh, weights);
  bench.service().scheduler_flags = kSchedFallback;
  bench.service().maglev_size = 131071;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    bench.service().endpoints[i].ready = i == 77 || i == 99;
  }
  bench.renew();
  const std::vector<std::string> all = owners(bench);
  EXPECT_EQ(all.size(), 131071U);
  const auto light = std::count(all.begin(), all.end(), "10.0.0.78:8080");
  EXPECT_GT(light, 0);
  EXPECT_EQ(light + std::count(all.begin(), all.end(), "10.0.0.100:8080"), 131071);
}

}  // namespace
}  // namespace sluice::core
