#include "test/unit/pipeline/fixture.h"

namespace sluice::test {
namespace {

using ChangeTest = PipelineTest;

// F2: the Service and its backend leave; the tables they were in are really freed.
TEST_F(ChangeTest, FlowsOfADeletedServiceGoOnUntilTheyEnd) {
  const std::string backend = establish(40000);
  tables_.services.erase("web");
  apply();
  apply();
  group_.settle();
  group_.publisher().collect();
  EXPECT_EQ(group_.publisher().collect(), 1u);
  EXPECT_EQ(sent(0, tcp4(kClient, kVip, 40000, 80, kAck)),
            Flows{"tcp 198.51.100.7:40000 > " + backend + ":8080"});
  EXPECT_EQ(sent(0, tcp4(backend, kClient, 8080, 40000, kAck)),
            Flows{"tcp 203.0.113.10:80 > 198.51.100.7:40000"});
  EXPECT_EQ(count(Counter::kConnJudged), 0u);
  // A new one is not ours any more.
  EXPECT_TRUE(group_.exchange(0, tcp4(kClient, kVip, 40001, 80, kSyn)).empty());
  group_.run_ms(905'000, 4000);
  EXPECT_EQ(group_.connections(), 0u);
}

const char* const kDns = "203.0.113.53";
Bytes query(std::uint16_t sport) {
  return udp4(kClient, kDns, sport, 53);
}

// A busy cluster changes every few milliseconds; a flow whose Service did not is not judged again.
TEST_F(ChangeTest, WhatLeavesAServiceLeavesFlowsOfOthersAlone) {
  tables_.services["other"] = {.cluster_ip = "10.96.0.77",
                               .protocol = core::Protocol::kUdp,
                               .endpoints = {"10.244.1.21:7000"}};
  apply();
  sent(0, query(40000));
  const std::uint64_t judged = count(Counter::kConnJudged);
  tables_.services.erase("other");
  apply();
  EXPECT_EQ(sent(0, query(40000)), Flows{"udp 198.51.100.7:40000 > 10.244.1.21:5353"});
  EXPECT_EQ(count(Counter::kConnJudged), judged);
  // That it was left alone hides nothing: its own endpoint's leaving is seen later on.
  tables_.services["dns"].endpoints = {"10.244.3.99:5353"};
  apply();
  EXPECT_EQ(sent(0, query(40000)), Flows{"udp 198.51.100.7:40000 > 10.244.3.99:5353"});
  EXPECT_EQ(count(Counter::kConnRedecided), 1u);
}

// A Service of many endpoints may lose and get one every few milliseconds.
TEST_F(ChangeTest, EndpointThatLeavesIsAskedForByItsOwnFlowsAlone) {
  tables_.services["dns"].endpoints = {"10.244.1.21:5353", "10.244.2.22:5353"};
  apply();
  std::map<std::string, std::uint16_t> flow_to;  // round robin
  for (const std::uint16_t sport : {std::uint16_t{40000}, std::uint16_t{40001}}) {
    const auto out = group_.exchange(0, query(sport));
    ASSERT_EQ(out.size(), 1u);
    flow_to[PacketView(out[0].bytes).dst()] = sport;
  }
  ASSERT_EQ(flow_to.size(), 2u);
  const std::uint64_t judged = count(Counter::kConnJudged);
  tables_.services["dns"].endpoints = {"10.244.2.22:5353"};
  apply();
  sent(0, query(flow_to[kB2]));
  EXPECT_EQ(count(Counter::kConnJudged), judged);
  for (int n = 0; n < 2; ++n) {
    EXPECT_EQ(sent(0, query(flow_to[kB1])).size(), 1u);
  }
  EXPECT_EQ(count(Counter::kConnRedecided), 1u);
}

// M-8: whatever leaves, a connection costs what it costs without changes.
TEST_F(ChangeTest, EndpointThatLeavesIsAskedForByNoConnection) {
  const std::string backend = establish(40000);
  tables_.services["web"].endpoints = {"10.244.3.99:8080"};
  apply();
  EXPECT_EQ(sent(0, tcp4(kClient, kVip, 40000, 80, kAck)),
            Flows{"tcp 198.51.100.7:40000 > " + backend + ":8080"});
  EXPECT_EQ(sent(0, tcp4(backend, kClient, 8080, 40000, kAck)).size(), 1u);
  EXPECT_EQ(count(Counter::kConnJudged), 0u);
}

TEST_F(ChangeTest, UdpFlowOfADeletedServiceGoesOnAndIsCountedOnce) {
  sent(0, query(40000));
  tables_.services.erase("dns");
  apply();
  for (int n = 0; n < 2; ++n) {
    EXPECT_EQ(sent(0, query(40000)), Flows{"udp 198.51.100.7:40000 > 10.244.1.21:5353"});
  }
  EXPECT_EQ(count(Counter::kConnDetached), 1u);
}

// F3, M-8
TEST_F(ChangeTest, EstablishedFlowKeepsABackendThatDrainsAndThenLeaves) {
  tables_.services["web"].endpoints = {"10.244.1.21:8080"};
  apply();
  ASSERT_EQ(establish(40000), kB1);
  const auto id = tables_.id("web", "10.244.1.21:8080");
  tables_.services["web"].endpoints = {"10.244.1.21:8080", "10.244.2.22:8080"};
  for (const bool gone : {false, true}) {
    if (gone) {
      tables_.services["web"].endpoints = {"10.244.2.22:8080"};
    } else {
      tables_.services["web"].terminating = {"10.244.1.21:8080"};
    }
    apply();
    EXPECT_EQ(sent(0, tcp4(kClient, kVip, 40000, 80, kAck)),
              Flows{"tcp 198.51.100.7:40000 > 10.244.1.21:8080"});
    EXPECT_EQ(sent(0, tcp4(kB1, kClient, 8080, 40000, kAck)),
              Flows{"tcp 203.0.113.10:80 > 198.51.100.7:40000"});
    for (std::uint16_t n = 1; n <= 20; ++n) {
      const auto sport = static_cast<std::uint16_t>(40000 + n + (gone ? 100 : 0));
      EXPECT_EQ(establish(sport), kB2);
    }
    EXPECT_EQ(group_.endpoint_use(id).active, 1u);
  }
  EXPECT_EQ(group_.publisher().draining(), 1u);
  group_.exchange(0, tcp4(kB1, kClient, 8080, 40000, kRst));
  group_.run_ms(11'000, 500);
  EXPECT_EQ(group_.endpoint_use(id).active, 0u);
  group_.publisher().collect();
  EXPECT_EQ(group_.publisher().draining(), 0u);
}

// F11, CT-2
TEST_F(ChangeTest, UdpFlowMovesWhenItsEndpointLeaves) {
  sent(0, udp4(kClient, "203.0.113.53", 5000, 53));
  tables_.services["dns"].endpoints = {"10.244.2.22:5353"};
  apply();
  EXPECT_EQ(sent(0, udp4(kClient, "203.0.113.53", 5000, 53)),
            Flows{"udp 198.51.100.7:5000 > 10.244.2.22:5353"});
  EXPECT_EQ(group_.connections(), 1u);
  EXPECT_EQ(count(Counter::kConnRedecided), 1u);
}

TEST_F(ChangeTest, UdpFlowStaysWhenAnotherEndpointComesOrThePolicyMoves) {
  sent(0, udp4(kClient, "203.0.113.53", 5000, 53));
  tables_.services["dns"].endpoints = {"10.244.1.21:5353", "10.244.2.22:5353"};
  tables_.services["dns"].terminating = {"10.244.1.21:5353"};
  apply();
  EXPECT_EQ(sent(0, udp4(kClient, "203.0.113.53", 5000, 53)),
            Flows{"udp 198.51.100.7:5000 > 10.244.1.21:5353"});
}

// F12, three variants: no negative result is ever remembered.
TEST_F(ChangeTest, UdpSenderFindsAServiceThatComesLater) {
  const Bytes datagram = udp4(kClient, "203.0.113.70", 5000, 161);
  EXPECT_TRUE(group_.exchange(0, datagram).empty());
  TestService snmp{.cluster_ip = "10.96.0.7",
                   .vip = "203.0.113.70",
                   .port = 161,
                   .protocol = core::Protocol::kUdp};
  tables_.services["snmp"] = snmp;
  apply();
  EXPECT_EQ(sent(0, datagram), Flows{"icmp 203.0.113.70 > 198.51.100.7"});
  tables_.services["snmp"].endpoints = {"10.244.1.21:161"};
  apply();
  EXPECT_EQ(sent(0, datagram), Flows{"udp 198.51.100.7:5000 > 10.244.1.21:161"});
  tables_.services.erase("snmp");
  apply();
  sent(0, datagram);
  group_.run_ms(2000);
  tables_.services["snmp"] = snmp;
  tables_.services["snmp"].endpoints = {"10.244.2.22:161"};
  apply();
  EXPECT_EQ(sent(0, datagram), Flows{"udp 198.51.100.7:5000 > 10.244.2.22:161"});
}

// F13
TEST_F(ChangeTest, SynOfAFlowWhoseBackendLeftIsScheduledAnew) {
  tables_.services["web"].endpoints = {"10.244.1.21:8080"};
  apply();
  ASSERT_EQ(establish(40000), kB1);
  sent(0, tcp4(kClient, kVip, 40001, 80, kSyn));  // half open
  tables_.services["web"].endpoints = {"10.244.2.22:8080"};
  apply();
  for (const std::uint16_t sport : std::initializer_list<std::uint16_t>{40000, 40001}) {
    EXPECT_EQ(sent(0, tcp4(kClient, kVip, sport, 80, kSyn)),
              Flows{"tcp 198.51.100.7:" + std::to_string(sport) + " > 10.244.2.22:8080"});
  }
  EXPECT_EQ(count(Counter::kConnRedecided), 2u);
  EXPECT_EQ(group_.connections(), 2u);
}

// 200 swaps under traffic: no packet is lost for that reason.
TEST_F(ChangeTest, TwoHundredTablesDuringTraffic) {
  std::vector<std::string> backend;
  for (std::uint16_t n = 0; n < 16; ++n) {
    backend.push_back(establish(static_cast<std::uint16_t>(40000 + n)));
  }
  for (int swap = 0; swap < 200; ++swap) {
    tables_.services["web"].endpoints =
        swap % 2 == 0 ? std::vector<std::string>{"10.244.1.21:8080"}
                      : std::vector<std::string>{"10.244.1.21:8080", "10.244.2.22:8080"};
    for (std::uint16_t n = 0; n < 16; ++n) {
      group_.inject(0, tcp4(kClient, kVip, static_cast<std::uint16_t>(40000 + n), 80, kAck));
    }
    apply();
    group_.settle();
    const auto out = flows(group_.take_sent());
    ASSERT_EQ(out.size(), 16u);
    for (std::uint16_t n = 0; n < 16; ++n) {
      EXPECT_EQ(out[n],
                "tcp 198.51.100.7:" + std::to_string(40000 + n) + " > " + backend[n] + ":8080");
    }
    EXPECT_EQ(
        group_.exchange(0, tcp4(kClient2, kVip, static_cast<std::uint16_t>(1000 + swap), 80, kSyn))
            .size(),
        1u);
  }
  group_.publisher().collect();
  EXPECT_EQ(group_.publisher().collect(), 1u);
  EXPECT_EQ(group_.balance().dropped, 0u);
}

SteppedGroupConfig four_workers() {
  SteppedGroupConfig config;
  config.workers = 4;
  return config;
}
class SteeringOfTheDepartedTest : public PipelineTest {
 protected:
  SteeringOfTheDepartedTest() : PipelineTest(four_workers()) {}
};
// The book knows frontends and backends that have left while they have connections.
TEST_F(SteeringOfTheDepartedTest, FlowsOfADeletedServiceStillFindTheirOwner) {
  const std::string backend = establish(40000);
  tables_.services.erase("web");
  apply();
  group_.settle();
  for (std::size_t w = 0; w < 4; ++w) {
    EXPECT_EQ(sent(w, tcp4(kClient, kVip, 40000, 80, kAck)),
              Flows{"tcp 198.51.100.7:40000 > " + backend + ":8080"});
    EXPECT_EQ(sent(w, tcp4(backend, kClient, 8080, 40000, kAck)),
              Flows{"tcp 203.0.113.10:80 > 198.51.100.7:40000"});
  }
  EXPECT_TRUE(group_.take_to_host().empty());
}

class NodeAddressTest : public PipelineTest {
 protected:
  static SteppedGroupConfig two_workers() {
    SteppedGroupConfig config;
    config.workers = 2;
    return config;
  }
  NodeAddressTest() : PipelineTest(two_workers()) {}
};

// The Service itself did not change: its flows were once found by the worker that has them only.
TEST_F(NodeAddressTest, NodePortFlowGoesOnWhenItsAddressLeavesTheNode) {
  const std::string address = "192.0.2.12";
  const auto before = tables_.node.v4.node_ports.addresses;
  tables_.node.v4.node_ports.addresses.push_back(*core::parse_address(address));
  apply();
  const auto syn = group_.exchange(0, tcp4(kClient, address, 40000, 30080, kSyn));
  ASSERT_EQ(syn.size(), 1u);
  const std::string backend = PacketView(syn[0].bytes).dst();
  sent(0, tcp4(backend, kClient, 8080, 40000, kSyn | kAck));
  tables_.node.v4.node_ports.addresses = before;
  apply();
  for (std::size_t worker = 0; worker < 2; ++worker) {
    EXPECT_EQ(sent(worker, tcp4(kClient, address, 40000, 30080, kAck)),
              Flows{"tcp 198.51.100.7:40000 > " + backend + ":8080"});
  }
  EXPECT_GT(count(Counter::kHandoverSent), 0u);
}

}  // namespace
}  // namespace sluice::test
