#include <set>

#include "dataplane/pipeline/affinity_pins.h"
#include "test/unit/pipeline/fixture.h"

namespace sluice::test {
namespace {

constexpr const char* kShared = "203.0.113.70";
constexpr const char* kInside = "10.96.0.70";
constexpr std::uint16_t kNodePort = 30070;

std::string client(std::size_t n) {
  return "198.51.100." + std::to_string(n + 1);
}

class PinnedTest : public PipelineTest {
 protected:
  explicit PinnedTest(const SteppedGroupConfig& config) : PipelineTest(config) {
    tables_.services["pin"] = {
        .cluster_ip = kInside,
        .vip = kShared,
        .node_port = kNodePort,
        .endpoints = {"10.244.1.1:8080", "10.244.1.2:8080", "10.244.1.3:8080", "10.244.1.4:8080"},
        .affinity_seconds = 60};
    apply();
  }
  /// Opens a flow that arrives at any worker; @return where it went.
  std::string open(const std::string& from, const std::string& to = kShared,
                   std::uint16_t port = 80) {
    const std::uint16_t sport = next_sport_++;
    return target(tcp4(from, to, sport, port, kSyn), sport);
  }
  std::string open_udp(const std::string& from, const std::string& to, std::uint16_t port) {
    const std::uint16_t sport = next_sport_++;
    return target(udp4(from, to, sport, port), sport);
  }
  std::string target(const Bytes& frame, std::uint16_t sport) {
    const auto out = group_.exchange(sport % group_.workers_count(), frame);
    return out.size() == 1 ? PacketView(out[0].bytes).dst()
                           : std::to_string(out.size()) + " frames sent";
  }
  void pass_seconds(std::uint64_t seconds) {
    group_.advance_ms(seconds * 1000);
    group_.settle();
  }
  /// A UDP or TCP source port of kClient whose flow's owner is not kClient's home.
  std::uint16_t port_away_from_home() {
    const auto address = *core::parse_address(kClient);
    std::uint16_t port = 5000;
    while (group_.owners().of_client(address, core::Be16::from_host(port)) == home()) {
      ++port;
    }
    return port;
  }
  std::size_t home() { return group_.owners().home_of(*core::parse_address(kClient)); }
  std::size_t owner(std::uint16_t port) {
    return group_.owners().of_client(*core::parse_address(kClient), core::Be16::from_host(port));
  }
  std::uint64_t picked() const { return count(Counter::kAffinityPicked); }
  std::uint64_t kept() const { return count(Counter::kAffinityKept); }

  std::uint16_t next_sport_ = 10000;
};

struct Group {
  std::size_t workers;
  pipeline::OwnerTwist twist;
};

class AffinityTest : public PinnedTest, public ::testing::WithParamInterface<Group> {
 protected:
  static SteppedGroupConfig config(const Group& group) {
    SteppedGroupConfig config;
    config.workers = group.workers;
    config.owner_twist = group.twist;
    return config;
  }
  AffinityTest() : PinnedTest(config(GetParam())) {}
};

// one memory for the service port, whatever the frontend, the client's port and the worker.
TEST_P(AffinityTest, AClientKeepsItsEndpointByEveryFrontendAndWorker) {
  std::set<std::string> used;
  for (std::size_t c = 0; c < 32; ++c) {
    const std::string first = open(client(c));
    for (int n = 0; n < 6; ++n) {
      EXPECT_EQ(open(client(c)), first);
      EXPECT_EQ(open(client(c), kInside), first);
      EXPECT_EQ(open(client(c), "192.0.2.11", kNodePort), first);
    }
    used.insert(first);
  }
  EXPECT_EQ(used.size(), 4u);
  EXPECT_EQ(picked(), 32u);
  EXPECT_EQ(kept(), 32u * 18);
  EXPECT_EQ(count(Counter::kConnCreated), 32u * 19);
}

// new flows restart the time, packets of established ones do not and never ask.
TEST_P(AffinityTest, OnlyNewFlowsKeepAPinAlive) {
  const std::string first = open(kClient);
  for (int n = 0; n < 3; ++n) {
    pass_seconds(50);
    EXPECT_EQ(open(kClient), first);
  }
  EXPECT_EQ(picked(), 1u);
  const std::string backend = first;
  const auto sport = static_cast<std::uint16_t>(next_sport_ - 1);
  const std::uint64_t asked = count(Counter::kAffinityAsked);
  sent(0, tcp4(backend, kClient, 8080, sport, kSyn | kAck));
  sent(0, tcp4(kClient, kShared, sport, 80, kAck));
  pass_seconds(40);
  EXPECT_EQ(sent(0, tcp4(kClient, kShared, sport, 80, kAck)).size(), 1u);
  pass_seconds(21);
  EXPECT_EQ(sent(0, tcp4(kClient, kShared, sport, 80, kAck)).size(), 1u);
  EXPECT_EQ(count(Counter::kAffinityAsked), asked);
  open(kClient);
  EXPECT_EQ(picked(), 2u);
}

// F43, A-4, A-5: not to an endpoint that takes no new flow, and not back when it returns.
TEST_P(AffinityTest, APinOnAnEndpointThatLeftTheListMovesForGood) {
  tables_.services["pin"].endpoints = {"10.244.1.1:8080", "10.244.1.2:8080"};
  apply();
  const std::string first = open(kClient);
  const std::string other = first == "10.244.1.1" ? "10.244.1.2" : "10.244.1.1";
  tables_.services["pin"].terminating = {first + ":8080"};
  apply();
  EXPECT_EQ(open(kClient), other);
  tables_.services["pin"].terminating = {};
  apply();
  EXPECT_EQ(open(kClient), other);
  tables_.services["pin"].not_serving = {other + ":8080"};
  apply();
  EXPECT_EQ(open(kClient), first);
  tables_.services["pin"].not_serving = {};
  tables_.services["pin"].endpoints = {other + ":8080"};
  apply();
  EXPECT_EQ(open(kClient), other);
  tables_.services["pin"].endpoints = {"10.244.1.1:8080", "10.244.1.2:8080"};
  tables_.services["pin"].terminating = {"10.244.1.1:8080", "10.244.1.2:8080"};
  apply();
  EXPECT_EQ(open(kClient), other);  // only terminating ones are left: they are candidates
}

// F27: the protocol is part of the service port.
TEST_P(AffinityTest, ProtocolsOnOnePortRememberEachTheirOwn) {
  tables_.services["pin-udp"] = tables_.services["pin"];
  tables_.services["pin-udp"].protocol = core::Protocol::kUdp;
  tables_.services["pin-udp"].endpoints = {"10.244.9.1:8080", "10.244.9.2:8080"};
  apply();
  const std::string tcp = open(kClient);
  const std::string udp = open_udp(kClient, kShared, 80);
  EXPECT_EQ(picked(), 2u);
  EXPECT_TRUE(udp.starts_with("10.244.9."));
  EXPECT_EQ(open_udp(kClient, "192.0.2.11", kNodePort), udp);
  tables_.services.erase("pin-udp");
  apply();
  EXPECT_EQ(open(kClient), tcp);
  EXPECT_EQ(picked(), 2u);
}

// F55: two ports of one Service are two memories.
TEST_P(AffinityTest, EachPortOfAServiceHasItsOwnMemory) {
  tables_.services["pin-b"] = tables_.services["pin"];
  tables_.services["pin-b"].port = 8546;
  tables_.services["pin-b"].node_port = 30071;
  apply();
  for (std::size_t c = 0; c < 50; ++c) {
    const std::string a = open(client(c));
    const std::string b = open(client(c), kShared, 8546);
    EXPECT_EQ(open(client(c)), a);
    EXPECT_EQ(open(client(c), kShared, 8546), b);
  }
  EXPECT_EQ(picked(), 100u);
}

// F52, A-7: seconds, and the Service's present number of them.
TEST_P(AffinityTest, AChangedTimeOutCountsFromTheNextFlowOn) {
  tables_.services["pin"].affinity_seconds = 10800;
  apply();
  const std::string first = open(kClient);
  pass_seconds(10799);
  EXPECT_EQ(open(kClient), first);
  pass_seconds(100);
  tables_.services["pin"].affinity_seconds = 90;
  apply();
  open(kClient);
  EXPECT_EQ(picked(), 2u);
  pass_seconds(80'000);
  tables_.services["pin"].affinity_seconds = 86400;
  apply();
  open(kClient);
  EXPECT_EQ(picked(), 2u);
}

TEST_P(AffinityTest, SwitchingAffinityOffForgets) {
  open(kClient);
  tables_.services["pin"].affinity_seconds = 0;
  apply();
  open(kClient);
  group_.settle();
  tables_.services["pin"].affinity_seconds = 60;
  apply();
  open(kClient);
  EXPECT_EQ(picked(), 2u);
  EXPECT_EQ(kept(), 0u);
}

std::string group_name(const ::testing::TestParamInfo<Group>& test) {
  const bool plain = test.param.twist == pipeline::OwnerTwist::kNone;
  const bool last = test.param.twist == pipeline::OwnerTwist::kLast;
  return std::to_string(test.param.workers) + (plain ? "Plain" : last ? "Last" : "Inverted");
}

INSTANTIATE_TEST_SUITE_P(Workers, AffinityTest,
                         ::testing::Values(Group{1, pipeline::OwnerTwist::kNone},
                                           Group{2, pipeline::OwnerTwist::kNone},
                                           Group{4, pipeline::OwnerTwist::kNone},
                                           Group{2, pipeline::OwnerTwist::kInverted},
                                           Group{4, pipeline::OwnerTwist::kInverted},
                                           Group{4, pipeline::OwnerTwist::kLast}),
                         group_name);

SteppedGroupConfig two_workers() {
  SteppedGroupConfig config;
  config.workers = 2;
  return config;
}

/// The ways of a flow between its owner and its client's home, step by step.
class AffinityRingTest : public PinnedTest {
 protected:
  AffinityRingTest() : PinnedTest(two_workers()) {
    tables_.services["pin"].protocol = core::Protocol::kUdp;
    apply();
    for (const char* backend : {"10.244.1.1", "10.244.1.2", "10.244.1.3", "10.244.1.4"}) {
      static_cast<void>(group_.hops().add(pipeline::PortIndex{0}, *core::parse_address(backend)));
      group_.hops().write(
          group_.hops().find(pipeline::PortIndex{0}, *core::parse_address(backend)),
          pipeline::NextHopWord::make(*core::parse_mac(kPeerMac), pipeline::PortIndex{0},
                                      pipeline::NeighbourState::kReachable));
    }
  }
  /// A datagram whose payload tells which one it is.
  Bytes datagram(std::uint8_t n) {
    return PacketBuilder()
        .eth()
        .ipv4(kClient, kShared)
        .udp(sport_, 80)
        .payload(std::size_t{n} + 20)
        .build();
  }
  void arrive(std::uint8_t first, std::uint8_t last) {
    for (std::uint8_t n = first; n <= last; ++n) {
      group_.inject(owner(sport_), datagram(n));
    }
    group_.step(owner(sport_));
  }
  const std::uint16_t sport_ = port_away_from_home();
};

TEST_F(AffinityRingTest, LaterPacketsWaitBehindTheFirst) {
  arrive(0, 0);
  EXPECT_EQ(count(Counter::kAffinityAsked), 1u);
  arrive(1, 10);
  EXPECT_EQ(count(Counter::kHeldAffinity), 8u);
  EXPECT_EQ(count(Counter::kAffinityQueueFull), 2u);
  EXPECT_EQ(group_.balance_error(), "");
  EXPECT_TRUE(group_.take_sent().empty());
  group_.settle();
  const auto out = group_.take_sent();
  ASSERT_EQ(out.size(), 9u);
  std::set<std::string> to;
  for (std::size_t n = 0; n < out.size(); ++n) {
    EXPECT_EQ(out[n].bytes.size(), datagram(static_cast<std::uint8_t>(n)).size());
    to.insert(PacketView(out[n].bytes).dst());
  }
  EXPECT_EQ(to.size(), 1u);
  EXPECT_EQ(count(Counter::kHeldAffinity), 0u);
  EXPECT_EQ(count(Counter::kConnCreated), 1u);
}

TEST_F(AffinityRingTest, WaitingEndsWithoutAnAnswerAndALateOneStillServes) {
  arrive(0, 3);
  EXPECT_EQ(count(Counter::kHeldAffinity), 3u);
  for (int n = 0; n < 20; ++n) {
    group_.advance_ms(20);
    group_.step(owner(sport_));
  }
  EXPECT_EQ(count(Counter::kAffinityTimeout), 3u);
  EXPECT_EQ(count(Counter::kHeldAffinity), 0u);
  group_.settle();
  EXPECT_EQ(group_.take_sent().size(), 1u);
}

TEST_F(AffinityRingTest, AnEndpointThatLeftOnTheWayIsNotUsed) {
  arrive(0, 0);
  group_.settle();
  const auto sent_first = group_.take_sent();
  ASSERT_EQ(sent_first.size(), 1u);
  const std::string first = PacketView(sent_first[0].bytes).dst();
  auto other = static_cast<std::uint16_t>(sport_ + 1);
  while (owner(other) == home()) {
    ++other;
  }
  group_.inject(owner(other), udp4(kClient, kShared, other, 80));
  group_.step(owner(other));
  group_.step(home());
  std::erase(tables_.services["pin"].endpoints, first + ":8080");
  apply();
  group_.step(owner(other));
  const auto out = group_.take_sent();
  ASSERT_EQ(out.size(), 1u);
  EXPECT_NE(PacketView(out[0].bytes).dst(), first);
  EXPECT_EQ(count(Counter::kAffinityStale), 1u);
}

// F6 of the shutdown: what waits, and what lies on the rings, is given back.
TEST_F(AffinityRingTest, DrainGivesEverythingBack) {
  arrive(0, 5);
  EXPECT_EQ(count(Counter::kHeldAffinity), 5u);
  group_.drain(0);
  group_.drain(1);
  EXPECT_EQ(count(Counter::kShutdownDropped), 6u);
  EXPECT_EQ(group_.pool().free_count(), group_.pool().size());
}

TEST(AffinityPins, TheOldestPinGivesWay) {
  TableMaker tables;
  tables.services["pin"] = {.vip = kShared, .endpoints = {"10.244.1.1:80"}, .affinity_seconds = 60};
  const auto table = tables.make();
  pipeline::AffinityPins pins(8, 256, 7);
  pins.see(*table);
  const core::Decision decision = core::decide(
      *table, {{*core::parse_address(kClient), *core::parse_address(kShared), 1, 80}, "eth0"});
  ASSERT_EQ(decision.verdict, core::FlowVerdict::kForward);
  constexpr std::uint64_t kSecond = 1'000'000'000;
  for (std::size_t c = 0; c < 8; ++c) {
    EXPECT_FALSE(pins.record(decision, *core::parse_address(client(c)), core::EndpointIndex{0},
                             (100 + c) * kSecond));
  }
  EXPECT_TRUE(pins.record(decision, *core::parse_address(client(8)), core::EndpointIndex{0},
                          108 * kSecond));
  for (std::size_t c = 0; c < 9; ++c) {
    EXPECT_EQ(pins.find(decision, *core::parse_address(client(c)), 109 * kSecond),
              c == 0 ? core::EndpointIndex::kNone : core::EndpointIndex{0});
  }
}

}  // namespace
}  // namespace sluice::test
