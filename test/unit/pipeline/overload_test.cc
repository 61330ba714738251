#include "test/unit/pipeline/fixture.h"

namespace sluice::test {
namespace {

using OverloadTest = PipelineTest;

constexpr int kFull = static_cast<int>(pipeline::kBurst);
constexpr int kOverload = static_cast<int>(pipeline::WorkerConfig{}.overload_bursts);
constexpr std::uint32_t kBudget = pipeline::WorkerConfig{}.new_flow_budget;

// F6: a port that takes 3 of each burst; every buffer comes back.
TEST_F(OverloadTest, FramesThePortDoesNotTakeAreFreedAndCounted) {
  establish(40000);
  const std::size_t before = group_.pool().free_count();
  const std::uint64_t sent_before = count(Counter::kTxFrames);
  group_.io(0).accept_per_flush(3);
  for (int burst = 0; burst < 1000; ++burst) {
    for (int n = 0; n < kFull; ++n) {
      group_.inject(0, tcp4(kClient, kVip, 40000, 80, kAck));
    }
    group_.step(0);
  }
  group_.settle();
  EXPECT_EQ(group_.pool().free_count(), before);
  EXPECT_EQ(count(Counter::kTxFrames) - sent_before, 3000u);
  EXPECT_EQ(count(Counter::kTxDropped), 1000u * (kFull - 3));
  group_.io(0).accept_per_flush(SIZE_MAX);
  group_.take_sent();
  for (int n = 0; n < 1000; ++n) {
    group_.inject(0, tcp4(kClient, kVip, 40000, 80, kAck));
    group_.step(0);
  }
  EXPECT_EQ(group_.take_sent().size(), 1000u);
}

class FloodTest : public PipelineTest {
 protected:
  explicit FloodTest(const SteppedGroupConfig& config = {}) : PipelineTest(config) {
    establish(40000);
    establish(40001);  // both neighbours are known
  }
  /// A receive burst of `size` SYNs and hits, the hits last. @return what was sent for it.
  Flows burst(int size, int hits = 0) {
    for (int n = 0; n < size - hits; ++n) {
      group_.inject(0, tcp4(kClient2, kVip, sport_++, 80, kSyn));
    }
    for (int n = 0; n < hits; ++n) {
      group_.inject(0, tcp4(kClient, kVip, 40000, 80, kAck));
    }
    group_.step(0);
    return flows(group_.take_sent());
  }
  /// So many frames to this address, no two of one flow.
  void inject_to(const char* vip, std::uint16_t port, int frames) {
    for (int n = 0; n < frames; ++n) {
      group_.inject(0, tcp4(kClient2, vip, sport_++, port, kSyn));
    }
  }
  std::uint16_t sport_ = 1000;
};

// Frames that came in a heap while the worker slept are no overload.
TEST_F(FloodTest, FullBurstsNowAndThenDropNoNewFlow) {
  for (int n = 0; n < 5; ++n) {
    for (int full = 0; full + 1 < kOverload; ++full) {
      EXPECT_EQ(burst(kFull).size(), pipeline::kBurst);
    }
    EXPECT_EQ(burst(kFull - 1).size(), pipeline::kBurst - 1);
  }
  EXPECT_EQ(count(Counter::kConnNewFlowBudget), 0u);
}

TEST_F(FloodTest, AFloodOpensAFewFlowsAPollAndEveryHitIsServed) {
  for (int n = 0; n + 1 < kOverload; ++n) {
    burst(kFull);
  }
  for (std::uint64_t n = 1; n <= 20; ++n) {
    const Flows out = burst(kFull, 4);
    ASSERT_EQ(out.size(), 4 + kBudget);
    EXPECT_EQ(out.front(), "tcp 198.51.100.7:40000 > 10.244.1.21:8080");  // hits come first
    EXPECT_EQ(count(Counter::kConnNewFlowBudget), (pipeline::kBurst - 4 - kBudget) * n);
  }
  EXPECT_EQ(burst(kFull - 1).size(), pipeline::kBurst - 1);  // it has caught up
  EXPECT_EQ(burst(kFull).size(), pipeline::kBurst);
}

TEST_F(FloodTest, BesideAFloodTheHostGetsItsOwn) {
  for (int n = 0; n < kOverload; ++n) {
    burst(kFull);
  }
  for (int n = 0; n < 10; ++n) {
    group_.inject(0, tcp4(kClient2, "192.0.2.250", static_cast<std::uint16_t>(n + 1), 22, kSyn));
    group_.inject(0, udp4(kClient2, "192.0.2.250", static_cast<std::uint16_t>(n + 1), 123));
  }
  EXPECT_EQ(burst(kFull - 20).size(), kBudget);
  EXPECT_EQ(group_.take_to_host().size(), 20u);
}

TEST_F(FloodTest, AFlowOpenedInAFloodGetsAllItsPackets) {
  for (int n = 0; n < kOverload; ++n) {
    burst(kFull);
  }
  for (int n = 0; n < 5; ++n) {
    group_.inject(0, udp4(kClient2, "203.0.113.53", 777, 53));
  }
  EXPECT_EQ(burst(kFull - 5).size(), 4 + kBudget);
}

TEST_F(FloodTest, FlowsOfBothFamiliesShareTheBudget) {
  sent(0, tcp6(kClient6, kVip6, 999, 80, kSyn));  // its neighbours are known
  for (int n = 0; n + 1 < kOverload; ++n) {
    burst(kFull);
  }
  for (int n = 0; n < kFull / 2; ++n) {
    group_.inject(0, tcp6(kClient6, kVip6, static_cast<std::uint16_t>(1000 + n), 80, kSyn));
  }
  EXPECT_EQ(burst(kFull / 2).size(), kBudget);
}

SteppedGroupConfig soon_a_flood() {
  SteppedGroupConfig config;
  config.flood_bursts = kOverload;
  return config;
}
/// From the next full burst on it is a flood.
class LongFloodTest : public FloodTest {
 protected:
  LongFloodTest() : FloodTest(soon_a_flood()) {
    for (int n = 0; n + 1 < kOverload; ++n) {
      burst(kFull);
    }
  }
};

TEST_F(LongFloodTest, OpensOneFlowAPollAndEveryHitIsServed) {
  for (int n = 0; n < 20; ++n) {
    const Flows out = burst(kFull, 4);
    ASSERT_EQ(out.size(), 4u + 1);
    EXPECT_EQ(out.front(), "tcp 198.51.100.7:40000 > 10.244.1.21:8080");  // hits come first
  }
  EXPECT_EQ(count(Counter::kConnNewFlowBudget), 20u * (kFull - 4 - 1));
}

TEST_F(LongFloodTest, SynsAreDroppedBeforeTheyAreLookedUp) {
  const std::uint64_t before = count(Counter::kConnMisses);
  burst(kFull, 4);
  EXPECT_EQ(count(Counter::kConnMisses) - before, 1u);
}

TEST_F(LongFloodTest, SynsOverIpv6AreDroppedBeforeTheyAreLookedUp) {
  sent(0, tcp6(kClient6, kVip6, 999, 80, kSyn));  // its neighbours are known
  for (int n = 0; n + 1 < kOverload; ++n) {
    burst(kFull);
  }
  const std::uint64_t before = count(Counter::kConnMisses);
  for (int n = 0; n < kFull; ++n) {
    group_.inject(0, tcp6(kClient6, kVip6, static_cast<std::uint16_t>(1000 + n), 80, kSyn));
  }
  EXPECT_EQ(burst(0).size(), 1u);
  EXPECT_EQ(count(Counter::kConnMisses) - before, 1u);
}

TEST_F(LongFloodTest, DatagramsOfKnownFlowsAreServed) {
  sent(0, udp4(kClient, "203.0.113.53", 777, 53));
  for (int n = 0; n + 1 < kOverload; ++n) {
    burst(kFull);
  }
  for (int n = 0; n < 5; ++n) {
    group_.inject(0, udp4(kClient, "203.0.113.53", 777, 53));
    group_.inject(0, udp4(kClient2, "203.0.113.53", sport_++, 53));
  }
  EXPECT_EQ(burst(kFull - 10).size(), 5u + 1);
}

TEST_F(LongFloodTest, TheHostGetsItsOwn) {
  inject_to("192.0.2.250", 22, 10);
  for (int n = 0; n < 10; ++n) {
    group_.inject(0, udp4(kClient2, "192.0.2.250", static_cast<std::uint16_t>(n + 1), 123));
  }
  EXPECT_EQ(burst(kFull - 20).size(), 1u);
  EXPECT_EQ(group_.take_to_host().size(), 20u);
}

TEST_F(LongFloodTest, SynsThatRulesRefuseTakeNobodysPlace) {
  tables_.services["inner"] = {.vip = "203.0.113.20",
                               .endpoints = {"10.244.1.21:9090"},
                               .sources = {"192.168.0.0/16"}};
  tables_.services["empty"] = {.vip = "203.0.113.21", .endpoints = {}};
  apply();
  for (const char* refused : {"203.0.113.20", "203.0.113.21"}) {
    for (int n = 0; n < 5; ++n) {
      const std::uint64_t opened = count(Counter::kConnCreated);
      const std::uint64_t dropped = count(Counter::kConnNewFlowBudget);
      inject_to(refused, 80, kFull - 1);
      burst(1);
      EXPECT_EQ(count(Counter::kConnCreated) - opened, 1u) << refused;
      EXPECT_EQ(count(Counter::kConnNewFlowBudget) - dropped, 0u) << refused;
    }
  }
}

TEST_F(LongFloodTest, SynsToNodePortsBelongToIt) {
  tables_.node.v4.node_ports.addresses = {*core::parse_address("192.0.2.11")};
  apply();
  inject_to("192.0.2.11", 30080, kFull);
  const std::uint64_t before = count(Counter::kConnNewFlowBudget);
  EXPECT_EQ(burst(0).size(), 1u);
  EXPECT_EQ(count(Counter::kConnNewFlowBudget) - before, std::uint64_t{kFull - 1});
}

TEST_F(LongFloodTest, WhatAServiceGaveUpGoesToTheHost) {
  burst(kFull);
  tables_.services["web"].vip = "203.0.113.99";
  apply();
  group_.take_to_host();
  EXPECT_TRUE(burst(kFull).empty());
  EXPECT_EQ(group_.take_to_host().size(), pipeline::kBurst);
}

// Who forgot it at once would open a heap of flows at every breath, and lose frames meanwhile.
TEST_F(LongFloodTest, IsRememberedWhileTheWorkerCatchesUpNowAndThen) {
  burst(kFull);
  for (int n = 0; n < 3; ++n) {
    EXPECT_EQ(burst(kFull - 1).size(), pipeline::kBurst - 1);  // there is time for all
    EXPECT_EQ(burst(kFull, 4).size(), 4u + 1);
  }
}

TEST_F(LongFloodTest, IsForgottenWhenNoOverloadCameForAWhile) {
  burst(kFull);
  group_.run_ms(110, 10);
  for (int n = 0; n + 1 < kOverload; ++n) {
    EXPECT_EQ(burst(kFull).size(), pipeline::kBurst);
  }
}

SteppedGroupConfig two(std::uint32_t steering_window, pipeline::OwnerTwist twist) {
  SteppedGroupConfig config = soon_a_flood();
  config.workers = 2;
  config.owner_twist = twist;
  config.steering_window = steering_window;
  return config;
}
constexpr std::uint32_t kNeverAsked = 1'000'000;
constexpr std::uint32_t kSoonAsked = 1;

/// Whether or not flows of others are remembered (steering_cache.h).
class ForeignFloodTest : public PipelineTest, public testing::WithParamInterface<std::uint32_t> {
 protected:
  ForeignFloodTest() : PipelineTest(two(GetParam(), pipeline::OwnerTwist::kLast)) {}
};
INSTANTIATE_TEST_SUITE_P(Steering, ForeignFloodTest, testing::Values(kNeverAsked, kSoonAsked));

TEST_P(ForeignFloodTest, WhoIsFloodedDropsNoNewFlowOfAnotherWorker) {
  establish(40000);
  const std::uint64_t before = group_.count(1, Counter::kConnCreated);
  std::uint16_t sport = 1000;
  for (int burst = 0; burst < 3 * kOverload; ++burst) {
    for (int n = 0; n < kFull; ++n) {
      group_.inject(0, tcp4(kClient2, kVip, sport++, 80, kSyn));
    }
    group_.step(0);
    group_.step(1);
  }
  EXPECT_EQ(group_.count(0, Counter::kConnNewFlowBudget), 0u);
  EXPECT_EQ(group_.count(1, Counter::kConnCreated) - before, 3u * kOverload * kFull);
}

class SharedFloodTest : public PipelineTest {
 protected:
  SharedFloodTest() : PipelineTest(two(kSoonAsked, pipeline::OwnerTwist::kNone)) {}
};

TEST_F(SharedFloodTest, IsDroppedAtTheDoorWhereFlowsOfOthersAreRememberedToo) {
  std::uint16_t sport = 1000;
  std::uint64_t misses = 0;
  for (int burst = 0; burst < 3 * kOverload; ++burst) {
    misses = group_.count(0, Counter::kConnMisses);
    for (int n = 0; n < kFull; ++n) {
      group_.inject(0, tcp4(kClient2, kVip, sport++, 80, kSyn));
    }
    group_.step(0);
    misses = group_.count(0, Counter::kConnMisses) - misses;
    group_.step(1);
  }
  const std::uint64_t own = group_.count(0, Counter::kConnNewFlowBudget);
  EXPECT_GT(own, 0u);
  EXPECT_GT(group_.count(1, Counter::kConnCreated), 3u * kOverload) << "the other has its own";
  // What was looked up in the last burst is the other's, and one SYN of ours.
  EXPECT_LT(misses, kFull * 3 / 4);
}

SteppedGroupConfig small_table() {
  SteppedGroupConfig config;
  config.connections = 64;
  config.new_flow_budget = 64;
  return config;
}
class FullTableTest : public PipelineTest {
 protected:
  FullTableTest() : PipelineTest(small_table()) {}
};

// F14: half-open ones give way, established ones never.
TEST_F(FullTableTest, EstablishedFlowsOutliveAFlood) {
  std::vector<std::string> backend;
  for (std::uint16_t n = 0; n < 20; ++n) {
    backend.push_back(establish(static_cast<std::uint16_t>(40000 + n)));
  }
  for (std::uint16_t n = 0; n < 3000; ++n) {
    group_.exchange(0, tcp4(kClient2, kVip, static_cast<std::uint16_t>(1000 + n), 80, kSyn));
  }
  EXPECT_GT(count(Counter::kConnEvicted), 2000u);
  for (std::uint16_t n = 0; n < 20; ++n) {
    EXPECT_EQ(
        sent(0, tcp4(kClient, kVip, static_cast<std::uint16_t>(40000 + n), 80, kAck)),
        Flows{"tcp 198.51.100.7:" + std::to_string(40000 + n) + " > " + backend[n] + ":8080"});
  }
  group_.run_ms(1'000'000, 4000);
  EXPECT_EQ(group_.connections(), 0u);
  EXPECT_EQ(group_.endpoint_use(tables_.id("web", "10.244.1.21:8080")).active, 0u);
}

TEST_F(FullTableTest, TableOfEstablishedFlowsRefusesNewOnesByName) {
  const std::uint32_t capacity = group_.capacity();
  for (std::uint32_t n = 0; n < capacity; ++n) {
    establish(static_cast<std::uint16_t>(40000 + n));
  }
  EXPECT_EQ(group_.connections(), capacity);
  EXPECT_TRUE(group_.exchange(0, tcp4(kClient2, kVip, 1, 80, kSyn)).empty());
  EXPECT_EQ(count(Counter::kConnTableFull), 1u);
}

// F93: complete, no duplicate, in pages, while connections come and go.
TEST_F(OverloadTest, DumpShowsEveryLivingConnectionOnce) {
  for (std::uint16_t n = 0; n < 300; ++n) {
    establish(static_cast<std::uint16_t>(20000 + n));
  }
  sent(0, tcp6(kClient6, kVip6, 40000, 80, kSyn));
  std::map<std::string, int> seen;
  std::uint16_t churn = 0;
  const auto row = [&](const pipeline::ConnectionRow& r) {
    ++seen[core::to_string(r.flow.src, r.flow.sport)];
    group_.inject(0, tcp4(kClient2, kVip, static_cast<std::uint16_t>(30000 + churn++), 80, kSyn));
    return true;
  };
  ASSERT_TRUE(group_.dump_connections({}, row).has_value());
  for (std::uint16_t n = 0; n < 300; ++n) {
    EXPECT_EQ(seen["198.51.100.7:" + std::to_string(20000 + n)], 1);
  }
  EXPECT_EQ(seen["[fd00:198::7]:40000"], 1);
  for (const auto& [name, times] : seen) {
    EXPECT_EQ(times, 1) << name;
  }
}

TEST_F(OverloadTest, DumpFiltersAndStopsAtTheLimit) {
  for (std::uint16_t n = 0; n < 100; ++n) {
    establish(static_cast<std::uint16_t>(20000 + n));
  }
  std::size_t rows = 0;
  const auto count_rows = [&](const pipeline::ConnectionRow& r) {
    EXPECT_EQ(core::to_string(r.backend), kB1);
    EXPECT_EQ(r.state, core::ConnState::kEstablished);
    ++rows;
    return true;
  };
  pipeline::ConnectionFilter filter;
  filter.backend = core::parse_address(kB1);
  group_.dump_connections(filter, count_rows);
  EXPECT_EQ(rows, 50u);
  rows = 0;
  filter.limit = 7;
  group_.dump_connections(filter, count_rows);
  EXPECT_EQ(rows, 7u);
}

}  // namespace
}  // namespace sluice::test
