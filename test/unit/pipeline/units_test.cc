// The parts that stand alone: counters, ring, idle strategies, steering book, publisher.

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "dataplane/pipeline/counters.h"
#include "dataplane/pipeline/handover.h"
#include "dataplane/pipeline/idle.h"
#include "dataplane/pipeline/rate_limit.h"
#include "dataplane/pipeline/spsc_ring.h"
#include "dataplane/pipeline/steering_book.h"
#include "dataplane/pipeline/view_publisher.h"
#include "test/support/table_maker.h"

namespace sluice::test {
namespace {

using pipeline::Counter;
using pipeline::IdleAction;
using pipeline::IdleStrategy;

TEST(Counters, NamesAreUniqueLowerCaseAndExplained) {
  std::set<std::string_view> names;
  for (const pipeline::CounterInfo& info : pipeline::kCounterTable) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_EQ(info.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_"),
              std::string_view::npos);
    EXPECT_NE(info.name.find('_'), std::string_view::npos) << info.name;
    EXPECT_FALSE(info.help.empty());
  }
}

TEST(Counters, BalanceOfAGroupCountsRingsAsHeld) {
  pipeline::CounterBlock a;
  pipeline::CounterBlock b;
  a.add(Counter::kRxFrames, 10);
  a.add(Counter::kHandoverSent, 4);
  a.add(Counter::kTxFrames, 5);
  a.add(Counter::kHopTimeout, 1);
  b.add(Counter::kHandoverReceived, 3);
  b.add(Counter::kHostPass, 3);
  const pipeline::CounterBlock* blocks[] = {&a, &b};
  const auto balance = pipeline::frame_balance(blocks);
  EXPECT_TRUE(balance.holds());
  EXPECT_EQ(balance.in, 10u);
  EXPECT_EQ(balance.held, 1u);
  EXPECT_TRUE(pipeline::frame_balance({blocks, 1}).holds());
  a.add(Counter::kRxFrames);
  EXPECT_FALSE(pipeline::frame_balance(blocks).holds());
}

TEST(SpscRing, KeepsOrderAndRefusesWhenFull) {
  pipeline::SpscRing<int> ring(5);
  EXPECT_EQ(ring.capacity(), 8u);
  int out[8];
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < 8; ++i) {
      EXPECT_TRUE(ring.push(round * 8 + i));
    }
    EXPECT_FALSE(ring.push(-1));
    EXPECT_EQ(ring.pop(out, 3), 3u);
    EXPECT_EQ(ring.pop(out + 3, 8), 5u);
    EXPECT_EQ(ring.pop(out, 0), 0u);
    for (int i = 3; i < 8; ++i) {
      EXPECT_EQ(out[i], round * 8 + i);
    }
  }
  EXPECT_EQ(ring.size(), 0u);
}

TEST(SpscRing, ShowsWhatWasClaimedWhenItIsPublished) {
  pipeline::SpscRing<int> ring(8);
  int out[8];
  for (int i = 0; i < 8; ++i) {
    int* const place = ring.claim();
    ASSERT_NE(place, nullptr);
    *place = i;
  }
  EXPECT_EQ(ring.claim(), nullptr);
  EXPECT_EQ(ring.pop(out, 8), 0u);
  ring.publish();
  ASSERT_EQ(ring.pop(out, 8), 8u);
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(out[i], i);
  }
}

TEST(Idle, AutoPausesThenYieldsThenSleepsUntilWorkComes) {
  pipeline::Idle idle(IdleStrategy::kAuto);
  for (std::uint32_t n = 0; n < pipeline::Idle::kPauses; ++n) {
    EXPECT_EQ(idle.after_poll(false), IdleAction::kPause);
  }
  for (std::uint32_t n = 0; n < pipeline::Idle::kYields; ++n) {
    EXPECT_EQ(idle.after_poll(false), IdleAction::kYield);
  }
  EXPECT_EQ(idle.after_poll(false), IdleAction::kSleep);
  EXPECT_EQ(idle.after_poll(false), IdleAction::kSleep);
  EXPECT_EQ(idle.after_poll(true), IdleAction::kNone);
  EXPECT_EQ(idle.after_poll(false), IdleAction::kPause);
}

TEST(Idle, OtherStrategiesDoOneThing) {
  EXPECT_EQ(pipeline::Idle(IdleStrategy::kSpin).after_poll(false), IdleAction::kPause);
  EXPECT_EQ(pipeline::Idle(IdleStrategy::kYield).after_poll(false), IdleAction::kYield);
  EXPECT_EQ(pipeline::Idle(IdleStrategy::kSleep).after_poll(false), IdleAction::kSleep);
}

TEST(RateLimit, BurstThenAPaceByTime) {
  pipeline::RateLimit limit(2, 10);
  int given = 0;
  for (int n = 0; n < 50; ++n) {
    given += limit.take(100) ? 1 : 0;
  }
  EXPECT_EQ(given, 10);
  EXPECT_TRUE(limit.take(101));
  EXPECT_TRUE(limit.take(101));
  EXPECT_FALSE(limit.take(101));
}

pipeline::L4Address l4(std::uint32_t n) {
  return {core::IpAddress(core::Be32::from_host(0x0af40000 + n)),
          static_cast<std::uint16_t>(8000 + n % 7), core::Protocol::kTcp};
}

/// Few addresses in few shards' worth of cells, so that removals close gaps.
TEST(SteeringBook, HoldsWhatACountedSetHolds) {
  pipeline::L4AddressSetBuilder builder;
  std::map<std::uint32_t, int> wanted;
  std::uint32_t random = 1;
  for (int step = 0; step < 200'000; ++step) {
    random = random * 1664525u + 1013904223u;
    const std::uint32_t n = (random >> 8) % 60'000;
    if ((random >> 30) == 0 || wanted[n] == 0) {
      builder.add(l4(n));
      ++wanted[n];
    } else {
      builder.remove(l4(n));
      --wanted[n];
    }
  }
  const pipeline::L4AddressSet set = builder.freeze();
  std::size_t size = 0;
  for (std::uint32_t n = 0; n < 60'000; ++n) {
    ASSERT_EQ(set.contains(l4(n)), wanted[n] != 0) << n;
    size += wanted[n] != 0 ? 1 : 0;
  }
  EXPECT_EQ(builder.size(), size);
}

TEST(SteeringBook, ManyAtOnceCountAsOneByOne) {
  pipeline::L4AddressSetBuilder builder;
  std::vector<pipeline::L4Address> few = {l4(1), l4(1), l4(70'000)};
  builder.add_all(few);
  const pipeline::L4AddressSet before = builder.freeze();
  std::vector<pipeline::L4Address> many;
  for (std::uint32_t n = 0; n < 60'000; ++n) {
    many.push_back(l4(n));
  }
  builder.add_all(many);
  builder.remove(l4(1));
  builder.remove(l4(2));
  builder.remove(l4(70'000));
  const pipeline::L4AddressSet after = builder.freeze();
  EXPECT_TRUE(before.contains(l4(70'000)));
  EXPECT_FALSE(before.contains(l4(3)));
  for (std::uint32_t n = 0; n < 60'000; ++n) {
    ASSERT_EQ(after.contains(l4(n)), n != 2) << n;
  }
  EXPECT_FALSE(after.contains(l4(70'000)));
  EXPECT_EQ(builder.size(), 59'999u);
}

TEST(SteeringBook, SetsCountTheirUsersAndShareWhatStays) {
  pipeline::L4AddressSetBuilder builder;
  for (std::uint32_t n = 0; n < 5000; ++n) {
    builder.add(l4(n));
  }
  builder.add(l4(7));
  const pipeline::L4AddressSet all = builder.freeze();
  builder.remove(l4(7));
  builder.remove(l4(8));
  const pipeline::L4AddressSet fewer = builder.freeze();
  EXPECT_TRUE(all.contains(l4(8)));
  EXPECT_FALSE(fewer.contains(l4(8)));
  EXPECT_TRUE(fewer.contains(l4(7)));
  for (std::uint32_t n = 9; n < 5000; ++n) {
    ASSERT_TRUE(fewer.contains(l4(n)));
  }
  EXPECT_FALSE(all.contains(l4(5001)));
  pipeline::L4Address udp = l4(7);
  udp.protocol = core::Protocol::kUdp;
  EXPECT_FALSE(all.contains(udp));  // F27
  EXPECT_EQ(builder.size(), 4999u);
}

class PublisherTest : public ::testing::Test {
 protected:
  PublisherTest() { tables_.services["web"] = {.endpoints = {"10.244.1.21:8080"}}; }
  const pipeline::WorkerTables& view() { return *publisher_.cell().load(0); }
  bool backend_known(const char* address) {
    return view().book->backends.contains(
        {*core::parse_address(address), 8080, core::Protocol::kTcp});
  }
  /// Are flows of this endpoint to be judged again that were judged in that epoch?
  bool concerned(const char* service, const char* endpoint, std::uint32_t epoch) {
    return view().departures->since(tables_.slot(service), tables_.id(service, endpoint), epoch);
  }
  TableMaker tables_;
  pipeline::ConnectionCounts counts_{1, 64};
  pipeline::ViewPublisher publisher_{1, counts_};
};

TEST_F(PublisherTest, NothingIsPublishedBeforeTheFirstTable) {
  publisher_.set_routes({});
  EXPECT_EQ(publisher_.cell().load(0), nullptr);
  publisher_.apply(tables_.make());
  EXPECT_NE(publisher_.cell().load(0), nullptr);
}

TEST_F(PublisherTest, EpochGrowsWithDeparturesAndRoutesOnly) {
  tables_.services["web"].protocol = core::Protocol::kUdp;
  publisher_.apply(tables_.make());
  const std::uint32_t first = view().epoch;
  tables_.services["web"].endpoints.push_back("10.244.2.22:8080");
  publisher_.apply(tables_.make());
  EXPECT_EQ(view().epoch, first);
  tables_.services["web"].endpoints.pop_back();
  publisher_.apply(tables_.make());
  EXPECT_EQ(view().epoch, first + 1);
  publisher_.set_routes({});
  EXPECT_EQ(view().epoch, first + 2);
}

// CT-2: a UDP flow moves when its endpoint is still there but serves no more.
TEST_F(PublisherTest, EndpointThatServesNoMoreConcernsItsFlows) {
  tables_.services["dns"] = {.protocol = core::Protocol::kUdp,
                             .endpoints = {"10.244.1.21:5353", "10.244.2.22:5353"}};
  publisher_.apply(tables_.make());
  const std::uint32_t judged = view().epoch;
  tables_.services["dns"].not_serving = {"10.244.1.21:5353"};
  publisher_.apply(tables_.make());
  EXPECT_TRUE(concerned("dns", "10.244.1.21:5353", judged));
  EXPECT_FALSE(concerned("dns", "10.244.2.22:5353", judged));
}

// CT-3: publishNotReadyAddresses makes endpoints ready that do not serve.
TEST_F(PublisherTest, UdpEndpointThatNeverServedIsConcernedWhenAnotherLeaves) {
  auto& dns = tables_.services["dns"];
  dns = {.protocol = core::Protocol::kUdp,
         .endpoints = {"10.244.1.21:5353", "10.244.2.22:5353", "10.244.3.23:5353"},
         .not_serving = {"10.244.1.21:5353"}};
  publisher_.apply(tables_.make());
  const std::uint32_t judged = view().epoch;
  dns.endpoints.pop_back();
  publisher_.apply(tables_.make());
  EXPECT_TRUE(concerned("dns", "10.244.1.21:5353", judged));
  EXPECT_FALSE(concerned("dns", "10.244.2.22:5353", judged));
}

// M-8
TEST_F(PublisherTest, TcpEndpointThatServesNoMoreOrLeavesConcernsNoFlow) {
  tables_.services["web"].endpoints = {"10.244.1.21:8080", "10.244.2.22:8080"};
  publisher_.apply(tables_.make());
  const std::uint32_t judged = view().epoch;
  tables_.services["web"].not_serving = {"10.244.1.21:8080"};
  publisher_.apply(tables_.make());
  EXPECT_EQ(view().epoch, judged);
  tables_.services["web"].endpoints.pop_back();
  publisher_.apply(tables_.make());
  EXPECT_EQ(view().epoch, judged);
  EXPECT_FALSE(concerned("web", "10.244.2.22:8080", judged));
}

TEST_F(PublisherTest, ServiceThatLeavesConcernsTheFlowsOfAllItsEndpoints) {
  tables_.services["shop"] = {.protocol = core::Protocol::kUdp,
                              .endpoints = {"10.244.3.31:8080", "10.244.3.32:8080"}};
  publisher_.apply(tables_.make());
  const std::uint32_t judged = view().epoch;
  const auto slot = tables_.slot("shop");
  tables_.services.erase("shop");
  publisher_.apply(tables_.make());
  for (const char* endpoint : {"10.244.3.31:8080", "10.244.3.32:8080"}) {
    EXPECT_TRUE(view().departures->since(slot, tables_.id("shop", endpoint), judged)) << endpoint;
  }
}

TEST_F(PublisherTest, WhatLeavesConcernsNoFlowOfOthers) {
  tables_.services["shop"] = {.protocol = core::Protocol::kUdp,
                              .endpoints = {"10.244.3.31:8080", "10.244.3.32:8080"}};
  publisher_.apply(tables_.make());
  const std::uint32_t judged = view().epoch;
  tables_.services["shop"].endpoints.pop_back();
  publisher_.apply(tables_.make());
  EXPECT_TRUE(concerned("shop", "10.244.3.32:8080", judged));
  EXPECT_FALSE(concerned("shop", "10.244.3.32:8080", view().epoch));
  EXPECT_FALSE(concerned("shop", "10.244.3.31:8080", judged));
  EXPECT_FALSE(concerned("web", "10.244.1.21:8080", judged));
  EXPECT_FALSE(view().departures->ways_since(judged));
}

TEST_F(PublisherTest, RoutesAndNextHopsConcernEveryFlow) {
  publisher_.apply(tables_.make());
  std::uint32_t judged = view().epoch;
  publisher_.set_routes({});
  EXPECT_TRUE(view().departures->ways_since(judged));
  judged = view().epoch;
  publisher_.renew_epoch();
  EXPECT_TRUE(view().departures->ways_since(judged));
  EXPECT_FALSE(view().departures->ways_since(view().epoch));
}

TEST_F(PublisherTest, BackendStaysInTheBookUntilReadersAndConnectionsAreGone) {
  publisher_.apply(tables_.make());
  counts_.opened(0, tables_.id("web", "10.244.1.21:8080"));
  EXPECT_TRUE(backend_known("10.244.1.21"));
  tables_.services["web"].endpoints = {"10.244.2.22:8080"};
  publisher_.apply(tables_.make());
  publisher_.collect();  // the worker has not read the new view yet
  EXPECT_TRUE(backend_known("10.244.1.21"));
  publisher_.collect();
  EXPECT_TRUE(backend_known("10.244.1.21"));
  counts_.closed(0, tables_.id("web", "10.244.1.21:8080"), false);
  publisher_.collect();
  EXPECT_FALSE(backend_known("10.244.1.21"));
  EXPECT_TRUE(backend_known("10.244.2.22"));
  EXPECT_EQ(publisher_.draining(), 0u);
}

// F62: a backend of two Services is forgotten with the last of them.
TEST_F(PublisherTest, SharedBackendOutlivesOneOfItsServices) {
  tables_.services["other"] = {.cluster_ip = "10.96.0.9", .endpoints = {"10.244.1.21:8080"}};
  publisher_.apply(tables_.make());
  tables_.services.erase("other");
  publisher_.apply(tables_.make());
  view();
  publisher_.collect();
  EXPECT_TRUE(backend_known("10.244.1.21"));
  EXPECT_EQ(publisher_.draining(), 0u);
}

// What is remembered of it must not grow with the number of times: it once doubled.
TEST_F(PublisherTest, AddressThatComesAndGoesUnderOneConnectionIsRememberedOnce) {
  const auto departed = [&] {
    return view().book->departed_frontends.contains(
        {*core::parse_address("203.0.113.99"), 80, core::Protocol::kTcp});
  };
  const std::string vip = tables_.services["web"].vip;
  publisher_.apply(tables_.make());
  const core::EndpointId id = tables_.id("web", "10.244.1.21:8080");
  counts_.opened(0, id);
  for (int n = 0; n < 40; ++n) {
    tables_.services["web"].vip = "203.0.113.99";
    publisher_.apply(tables_.make());
    tables_.services["web"].vip = vip;
    publisher_.apply(tables_.make());
    EXPECT_TRUE(departed());
    publisher_.collect();
    ASSERT_LE(publisher_.draining(), 2u);
  }
  counts_.closed(0, id, false);
  publisher_.collect();
  EXPECT_EQ(publisher_.draining(), 0u);
  EXPECT_FALSE(departed());
}

TEST_F(PublisherTest, NodePortOfAnAddressThatLeftTheNodeStaysInTheBookWhileUsed) {
  const auto departed = [&] {
    return view().book->departed_frontends.contains(
        {*core::parse_address("192.0.2.12"), 30080, core::Protocol::kTcp});
  };
  const auto addresses = tables_.node.v4.node_ports.addresses;
  tables_.services["web"].node_port = 30080;
  tables_.node.v4.node_ports.addresses.push_back(*core::parse_address("192.0.2.12"));
  publisher_.apply(tables_.make());
  const core::EndpointId id = tables_.id("web", "10.244.1.21:8080");
  counts_.opened(0, id);
  tables_.node.v4.node_ports.addresses = addresses;
  publisher_.apply(tables_.make());
  publisher_.collect();
  EXPECT_TRUE(departed());
  counts_.closed(0, id, false);
  publisher_.collect();
  publisher_.collect();
  EXPECT_FALSE(departed());
  EXPECT_EQ(publisher_.draining(), 0u);
}

TEST_F(PublisherTest, NodePortsAndReservedPortsAreExcludedWhileUsed) {
  tables_.services["web"].node_port = 50000;
  publisher_.apply(tables_.make());
  publisher_.set_reserved_ports({50001});
  EXPECT_TRUE(view().excluded->contains(50000));
  EXPECT_TRUE(view().excluded->contains(50001));
  tables_.services["web"].node_port = 0;
  publisher_.apply(tables_.make());
  publisher_.set_reserved_ports({});
  EXPECT_FALSE(view().excluded->contains(50000));
  EXPECT_FALSE(view().excluded->contains(50001));
}

TEST(HandoverRings, TellWhatTheyTake) {
  EXPECT_EQ(pipeline::HandoverRings::memory_bytes(1, 512), 0u);
  EXPECT_NEAR(static_cast<double>(pipeline::HandoverRings::memory_bytes(16, 512)), 16. * (1 << 20),
              1. * (1 << 20));
}

}  // namespace
}  // namespace sluice::test
