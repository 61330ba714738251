#include "test/unit/pipeline/fixture.h"

namespace sluice::test {
namespace {

using pipeline::NeighbourState;
using pipeline::NextHopWord;
using pipeline::PortIndex;

class NextHopTest : public PipelineTest {
 protected:
  NextHopTest() { group_.set_resolve_neighbours(false); }
  void set_neighbour(const std::string& address, NeighbourState state,
                     const char* mac = "02:00:00:00:00:77") {
    auto& hops = group_.hops();
    const auto index = hops.add(PortIndex{0}, *core::parse_address(address));
    hops.write(index, NextHopWord::make(*core::parse_mac(mac), PortIndex{0}, state));
  }
};

TEST_F(NextHopTest, PacketsWaitForTheNeighbourAndLeaveInOrder) {
  for (std::uint16_t n = 0; n < 4; ++n) {
    EXPECT_TRUE(group_.exchange(0, udp4(kClient, "203.0.113.53", 5000, 53)).empty());
  }
  EXPECT_EQ(count(Counter::kHeldNeighbour), 4u);
  EXPECT_EQ(count(Counter::kHopRequested), 1u);
  EXPECT_EQ(group_.balance_error(), "");
  set_neighbour(kB1, NeighbourState::kReachable);
  group_.advance_ms(2);
  group_.step(0);
  const auto out = group_.take_sent();
  ASSERT_EQ(out.size(), 4u);
  EXPECT_EQ(PacketView(out[0].bytes).eth_dst(), "02:00:00:00:00:77");
  EXPECT_EQ(count(Counter::kHeldNeighbour), 0u);
}

TEST_F(NextHopTest, NinthPacketIsDroppedAndSilenceEndsTheWait) {
  for (int n = 0; n < 9; ++n) {
    group_.exchange(0, udp4(kClient, "203.0.113.53", 5000, 53));
  }
  EXPECT_EQ(count(Counter::kHeldNeighbour), 8u);
  EXPECT_EQ(count(Counter::kHopQueueFull), 1u);
  group_.run_ms(3200);
  EXPECT_EQ(count(Counter::kHopTimeout), 8u);
  EXPECT_EQ(count(Counter::kHeldNeighbour), 0u);
}

TEST_F(NextHopTest, FailedNeighbourDropsAndIsAskedForAgain) {
  set_neighbour(kB1, NeighbourState::kFailed);
  EXPECT_TRUE(group_.exchange(0, udp4(kClient, "203.0.113.53", 5000, 53)).empty());
  EXPECT_EQ(count(Counter::kHopFailed), 1u);
  EXPECT_EQ(count(Counter::kHopRequested), 1u);
}

TEST_F(NextHopTest, ChangedMacIsUsedByTheNextPacket) {
  set_neighbour(kB1, NeighbourState::kReachable);
  group_.exchange(0, udp4(kClient, "203.0.113.53", 5000, 53));
  set_neighbour(kB1, NeighbourState::kReachable, "02:00:00:00:00:78");
  const auto out = group_.exchange(0, udp4(kClient, "203.0.113.53", 5000, 53));
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(PacketView(out[0].bytes).eth_dst(), "02:00:00:00:00:78");
}

TEST_F(NextHopTest, GatewayOfTheLongestPrefixIsAsked) {
  set_neighbour("192.0.2.1", NeighbourState::kReachable, "02:00:00:00:00:01");
  set_neighbour("192.0.2.2", NeighbourState::kReachable, "02:00:00:00:00:02");
  group_.publisher().set_routes(pipeline::RouteTable(
      {{*core::parse_cidr("0.0.0.0/0"), PortIndex{0}, core::parse_address("192.0.2.1")},
       {*core::parse_cidr("10.244.1.0/24"), PortIndex{0}, core::parse_address("192.0.2.2")}}));
  const auto out = group_.exchange(0, udp4(kClient, "203.0.113.53", 5000, 53));
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(PacketView(out[0].bytes).eth_dst(), "02:00:00:00:00:02");
  // The route changes under the flow: its next packet goes the other way.
  group_.publisher().set_routes(pipeline::RouteTable(
      {{*core::parse_cidr("0.0.0.0/0"), PortIndex{0}, core::parse_address("192.0.2.1")}}));
  const auto moved = group_.exchange(0, udp4(kClient, "203.0.113.53", 5000, 53));
  ASSERT_EQ(moved.size(), 1u);
  EXPECT_EQ(PacketView(moved[0].bytes).eth_dst(), "02:00:00:00:00:01");
}

TEST_F(NextHopTest, WithoutARouteTheHostForwardsTheTranslatedPacket) {
  group_.publisher().set_routes(pipeline::RouteTable());
  EXPECT_TRUE(group_.exchange(0, udp4(kClient, "203.0.113.53", 5000, 53)).empty());
  EXPECT_EQ(flows(group_.take_to_host()), Flows{"udp 198.51.100.7:5000 > 10.244.1.21:5353"});
  EXPECT_EQ(count(Counter::kHostNoRoute), 1u);
}

TEST_F(NextHopTest, BackendOnThisNodeIsTheHosts) {
  tables_.services["dns"].endpoints = {"192.0.2.11:5353"};
  apply();
  EXPECT_TRUE(group_.exchange(0, udp4(kClient, "203.0.113.53", 5000, 53)).empty());
  EXPECT_EQ(flows(group_.take_to_host()), Flows{"udp 198.51.100.7:5000 > 192.0.2.11:5353"});
}

// A packet the host sent has the Ethernet address of where the host sends it, not the host's own.
TEST_F(NextHopTest, WhatWaitedForANeighbourThatIsTheHostIsTakenByTheTap) {
  group_.inject(0,
                PacketBuilder()
                    .eth(kOwnMac, kPeerMac)
                    .ipv4(kClient, "203.0.113.53")
                    .udp(5000, 53)
                    .payload(20)
                    .build(),
                0, pipeline::Origin::kHost);
  group_.settle();
  ASSERT_EQ(count(Counter::kHeldNeighbour), 1u);
  set_neighbour(kB1, NeighbourState::kHost);
  group_.advance_ms(2);
  group_.step(0);
  const auto out = group_.take_to_host();
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(PacketView(out[0].bytes).eth_dst(), kOwnMac);
}

// The answer of a flow that is about to move to another endpoint must not take an old way.
TEST_F(NextHopTest, AnswersLookForTheirNextHopAnewWhenRoutesChange) {
  set_neighbour(kB1, NeighbourState::kReachable);
  set_neighbour("192.0.2.1", NeighbourState::kReachable, "02:00:00:00:00:01");
  set_neighbour("192.0.2.2", NeighbourState::kReachable, "02:00:00:00:00:02");
  const auto routes = [](const char* gateway) {
    return pipeline::RouteTable(
        {{*core::parse_cidr("10.244.0.0/16"), PortIndex{0}, std::nullopt},
         {*core::parse_cidr("0.0.0.0/0"), PortIndex{0}, core::parse_address(gateway)}});
  };
  group_.publisher().set_routes(routes("192.0.2.1"));
  group_.exchange(0, udp4(kClient, "203.0.113.53", 5000, 53));
  ASSERT_EQ(group_.exchange(0, udp4(kB1, kClient, 5353, 5000)).size(), 1u);
  tables_.services["dns"].endpoints = {"10.244.2.22:5353"};
  apply();
  group_.publisher().set_routes(routes("192.0.2.2"));
  const auto out = group_.exchange(0, udp4(kB1, kClient, 5353, 5000));
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(PacketView(out[0].bytes).eth_dst(), "02:00:00:00:00:02");
}

TEST(RouteTable, LongestPrefixWinsAndFamiliesStayApart) {
  const pipeline::RouteTable routes(
      {{*core::parse_cidr("10.0.0.0/8"), PortIndex{1}, std::nullopt},
       {*core::parse_cidr("10.244.0.0/16"), PortIndex{2}, std::nullopt},
       {*core::parse_cidr("10.244.0.0/16"), PortIndex{3}, std::nullopt},
       {*core::parse_cidr("::/0"), PortIndex{4}, std::nullopt}});
  EXPECT_EQ(routes.find(*core::parse_address("10.244.3.4"))->port, PortIndex{2});
  EXPECT_EQ(routes.find(*core::parse_address("10.1.3.4"))->port, PortIndex{1});
  EXPECT_EQ(routes.find(*core::parse_address("fd00::1"))->port, PortIndex{4});
  EXPECT_EQ(routes.find(*core::parse_address("192.0.2.1")), nullptr);
}

TEST(NextHopDirectory, IndicesStayAndTheLimitIsKept) {
  pipeline::NextHopDirectory hops(4);
  const auto a = hops.add(PortIndex{0}, *core::parse_address("10.0.0.1"));
  const auto b = hops.add(PortIndex{1}, *core::parse_address("10.0.0.1"));
  const auto c = hops.add(PortIndex{0}, *core::parse_address("fd00::1"));
  EXPECT_NE(a, b);
  EXPECT_EQ(hops.add(PortIndex{0}, *core::parse_address("10.0.0.1")), a);
  EXPECT_EQ(hops.find(PortIndex{0}, *core::parse_address("fd00::1")), c);
  EXPECT_EQ(hops.add(PortIndex{0}, *core::parse_address("10.0.0.9")), core::NextHopIndex::kNone);
  EXPECT_EQ(hops.find(PortIndex{0}, *core::parse_address("10.0.0.9")), core::NextHopIndex::kNone);
  EXPECT_EQ(hops.read(pipeline::kHostHop).state(), NeighbourState::kHost);
}

}  // namespace
}  // namespace sluice::test
