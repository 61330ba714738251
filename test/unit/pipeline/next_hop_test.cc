#include "dataplane/pipeline/hop_queue.h"
#include "dataplane/pipeline/next_hop_places.h"
#include "test/unit/pipeline/fixture.h"

namespace sluice::test {
namespace {

using pipeline::NeighbourState;
using pipeline::NextHopWord;
using pipeline::Packet;
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

// Once it was three seconds before anybody asked again.
TEST_F(NextHopTest, ANeighbourThatFoundTheRequestRingFullIsAskedForSoon) {
  const auto asked = [&](const char* address) {
    const auto requests = group_.take_requests();
    return std::any_of(requests.begin(), requests.end(),
                       [&](const auto& r) { return core::to_string(r.address) == address; });
  };
  set_neighbour(kB1, NeighbourState::kReachable);
  for (std::uint16_t n = 0; n < 300; ++n) {
    const std::string client = "198.18." + std::to_string(n / 250) + "." + std::to_string(n % 250);
    group_.exchange(0, udp4(client, "203.0.113.53", 5000, 53));
    group_.exchange(0, udp4(kB1, client, 5353, 5000));
  }
  group_.exchange(0, udp4(kClient, "203.0.113.53", 5000, 53));
  group_.exchange(0, udp4(kB1, kClient, 5353, 5000));
  EXPECT_GT(count(Counter::kHopRequestLost), 0u);
  EXPECT_FALSE(asked(kClient));
  group_.advance_ms(3);
  group_.step(0);
  EXPECT_TRUE(asked(kClient));
  group_.advance_ms(50);
  group_.step(0);
  EXPECT_FALSE(asked(kClient));
  group_.run_ms(300);
  EXPECT_TRUE(asked(kClient));  // the mirror, too, may have had too much to do
}

TEST(HopQueue, TheOneThatCameFirstGivesWayAndNeverAVouchedOneToAnother) {
  pipeline::HopQueue queue;
  std::vector<std::uint32_t> evicted;
  const auto add = [&](std::uint32_t n, bool vouched) {
    Packet packet;
    packet.total = n;
    const pipeline::ResolvedHop hop{core::NextHopIndex::kNone, PortIndex{0},
                                    core::IpAddress(core::Be32::from_host(n)), vouched};
    const auto* waits =
        queue.add(hop, packet, 7, [&](const Packet& p) { evicted.push_back(p.total); });
    return waits == nullptr ? 0u : waits->count;
  };
  constexpr std::uint32_t kPlaces = pipeline::HopQueue::kNeighbours;
  add(5000, true);
  for (std::uint32_t n = 0; n < kPlaces; ++n) {
    EXPECT_EQ(add(n, false), 1u);
  }
  EXPECT_EQ(add(0, false), 2u);
  EXPECT_TRUE(evicted.empty());
  for (std::uint32_t n = kPlaces; n < 3 * kPlaces; ++n) {
    EXPECT_EQ(add(n, false), 1u);
  }
  ASSERT_EQ(evicted.size(), 2 * kPlaces + 1);
  EXPECT_EQ(evicted[1], 0u);
  EXPECT_EQ(evicted[2], 1u);
  EXPECT_EQ(evicted.back(), 2 * kPlaces - 1);
  EXPECT_EQ(queue.held(), kPlaces + 1);
  EXPECT_EQ(add(5000, true), 2u);
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

// Addresses that somebody made up must not take the places of the real ones for good.
TEST(NextHopDirectory, ForgottenAddressesGiveWayInThreeSteps) {
  pipeline::NextHopDirectory hops(4);
  const auto address = [](const char* text) { return *core::parse_address(text); };
  hops.add(PortIndex{0}, address("10.0.0.1"));
  const auto left = hops.add(PortIndex{0}, address("10.0.0.2"));
  const auto wanted_again = hops.add(PortIndex{0}, address("10.0.0.3"));
  hops.forget(PortIndex{0}, address("10.0.0.2"));
  hops.forget(PortIndex{0}, address("10.0.0.3"));
  hops.forget(PortIndex{0}, address("10.0.0.99"));
  EXPECT_EQ(hops.add(PortIndex{0}, address("10.0.0.3")), wanted_again);
  ASSERT_TRUE(hops.should_retire());
  hops.retire();
  EXPECT_EQ(hops.find(PortIndex{0}, address("10.0.0.2")), core::NextHopIndex::kNone);
  EXPECT_EQ(hops.find(PortIndex{0}, address("10.0.0.3")), wanted_again);
  EXPECT_EQ(hops.add(PortIndex{0}, address("10.0.0.9")), core::NextHopIndex::kNone);  // not yet
  EXPECT_FALSE(hops.should_retire());
  hops.recycle();
  EXPECT_EQ(hops.add(PortIndex{0}, address("10.0.0.9")), left);
  EXPECT_EQ(hops.find(PortIndex{0}, address("10.0.0.9")), left);
  EXPECT_EQ(hops.read(left).state(), NeighbourState::kUnresolved);
}

TEST(NextHopPlaces, OthersGetAPlaceOnceTheyAnswerAndNeverOneOfTheLastQuarter) {
  pipeline::NextHopDirectory hops(16);
  pipeline::NextHopPlaces places(hops);
  const auto address = [](std::uint32_t n) { return core::IpAddress(core::Be32::from_host(n)); };
  for (std::uint32_t n = 1; n <= 100; ++n) {
    EXPECT_TRUE(places.request({PortIndex{0}, address(n), false}));
    EXPECT_TRUE(places.set(PortIndex{0}, address(n), {}, NeighbourState::kFailed));
  }
  EXPECT_EQ(hops.available(), 15u);
  for (std::uint32_t n = 1; n <= 100; ++n) {
    EXPECT_EQ(places.set(PortIndex{0}, address(n), {}, NeighbourState::kReachable), n <= 11) << n;
  }
  for (std::uint32_t n = 201; n <= 210; ++n) {
    EXPECT_EQ(places.request({PortIndex{0}, address(n), true}), n <= 204) << n;
  }
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
