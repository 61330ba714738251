#include "test/unit/pipeline/fixture.h"

namespace sluice::test {
namespace {

class FullNatTest : public PipelineTest {
 protected:
  FullNatTest() {
    tables_.services["web"].masquerade_external = true;
    tables_.services["web6"].masquerade_external = true;
    apply();
  }
};

TEST_F(FullNatTest, SourceIsTheNodesAndTheAnswerFindsTheClient) {
  const auto out = group_.exchange(0, tcp4(kClient, kVip, 40000, 80, kSyn));
  ASSERT_EQ(out.size(), 1u);
  const PacketView syn(out[0].bytes);
  EXPECT_EQ(syn.src(), "192.0.2.11");
  EXPECT_GE(syn.sport(), 40960);
  EXPECT_EQ(syn.dst(), kB1);
  EXPECT_EQ(syn.checksum_error(), "");
  EXPECT_EQ(sent(0, tcp4(kB1, "192.0.2.11", 8080, syn.sport(), kSyn | kAck)),
            Flows{"tcp 203.0.113.10:80 > 198.51.100.7:40000"});
}

TEST_F(FullNatTest, Ipv6) {
  const auto out = group_.exchange(0, tcp6(kClient6, kVip6, 40000, 80, kSyn));
  ASSERT_EQ(out.size(), 1u);
  const PacketView syn(out[0].bytes);
  EXPECT_EQ(syn.src(), "fd00:11::11");
  EXPECT_EQ(syn.checksum_error(), "");
  EXPECT_EQ(sent(0, tcp6(kB6, "fd00:11::11", 8080, syn.sport(), kSyn | kAck)),
            Flows{"tcp [fd00:203::10]:80 > [fd00:198::7]:40000"});
}

// The host takes no packet from the tap that comes from its own address.
TEST_F(FullNatTest, AnEndpointOnTheHostSeesTheClient) {
  tables_.services["web"].endpoints = {"192.0.2.11:8080"};
  apply();
  EXPECT_TRUE(group_.exchange(0, tcp4(kClient, kVip, 40000, 80, kSyn)).empty());
  EXPECT_EQ(flows(group_.take_to_host()), Flows{"tcp 198.51.100.7:40000 > 192.0.2.11:8080"});
  group_.inject(0, tcp4("192.0.2.11", kClient, 8080, 40000, kSyn | kAck), 0,
                pipeline::Origin::kHost);
  group_.settle();
  EXPECT_EQ(flows(group_.take_sent()), Flows{"tcp 203.0.113.10:80 > 198.51.100.7:40000"});
}

TEST_F(FullNatTest, AnEndpointOnTheHostSeesAPoolAddress) {
  tables_.services["web"].endpoints = {"192.0.2.11:8080"};
  tables_.node.v4.snat_addresses = {*core::parse_address("192.0.2.200")};
  tables_.node.snat_first_port = 1024;
  apply();
  EXPECT_TRUE(group_.exchange(0, tcp4(kClient, kVip, 40000, 80, kSyn)).empty());
  const auto out = group_.take_to_host();
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(PacketView(out[0].bytes).src(), "192.0.2.200");
}

TEST_F(FullNatTest, PoolAddressesAreUsedWhenThereAreAny) {
  tables_.node.v4.snat_addresses = {*core::parse_address("192.0.2.200")};
  tables_.node.snat_first_port = 1024;
  apply();
  const auto out = group_.exchange(0, tcp4(kClient, kVip, 40000, 80, kSyn));
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(PacketView(out[0].bytes).src(), "192.0.2.200");
}

// F33, F17: every port that is not excluded is used, then flows are refused by their own counter.
TEST_F(FullNatTest, PortsAreUsedUpToTheLastOneAndNotBeyond) {
  tables_.node.snat_first_port = 30077;
  tables_.node.snat_last_port = 30084;  // eight ports, 30080 is the node port
  tables_.services["web"].endpoints = {"10.244.1.21:8080"};
  apply();
  std::vector<std::uint16_t> used;
  for (std::uint16_t n = 0; n < 9; ++n) {
    const auto out =
        group_.exchange(0, tcp4(kClient, kVip, static_cast<std::uint16_t>(40000 + n), 80, kSyn));
    if (out.size() == 1) {
      used.push_back(PacketView(out[0].bytes).sport());
    }
  }
  std::sort(used.begin(), used.end());
  EXPECT_EQ(used, (std::vector<std::uint16_t>{30077, 30078, 30079, 30081, 30082, 30083, 30084}));
  EXPECT_EQ(count(Counter::kConnSnatExhausted), 2u);
  // The same ports serve another backend at the same time.
  tables_.services["web"].endpoints = {"10.244.2.22:8080"};
  apply();
  EXPECT_EQ(group_.exchange(0, tcp4(kClient2, kVip, 40000, 80, kSyn)).size(), 1u);
}

TEST_F(PipelineTest, HairpinOfALocalEndpointIsMasqueraded) {
  tables_.services["web"].endpoints = {"10.244.1.21:8080"};
  tables_.services["web"].local = {"10.244.1.21:8080"};
  apply();
  const auto out = group_.exchange(0, tcp4(kB1, "10.96.0.1", 40000, 80, kSyn));
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(PacketView(out[0].bytes).src(), "192.0.2.11");
  EXPECT_EQ(PacketView(out[0].bytes).dst(), kB1);
}

// One UDP socket, two VIPs, one backend: the reply keys are the same.
TEST_F(PipelineTest, OneSocketToTwoVipsOfOneBackendIsAnsweredByBoth) {
  tables_.services["dns2"] = {.cluster_ip = "10.96.0.3",
                              .vip = "203.0.113.54",
                              .port = 53,
                              .protocol = core::Protocol::kUdp,
                              .endpoints = {"10.244.1.21:5353"}};
  apply();
  EXPECT_EQ(sent(0, udp4(kClient, "203.0.113.53", 5000, 53)),
            Flows{"udp 198.51.100.7:5000 > 10.244.1.21:5353"});
  const auto second = group_.exchange(0, udp4(kClient, "203.0.113.54", 5000, 53));
  ASSERT_EQ(second.size(), 1u);
  const PacketView request(second[0].bytes);
  EXPECT_EQ(request.src(), "192.0.2.11");
  EXPECT_EQ(count(Counter::kConnReplyClash), 1u);
  EXPECT_EQ(sent(0, udp4(kB1, kClient, 5353, 5000)),
            Flows{"udp 203.0.113.53:53 > 198.51.100.7:5000"});
  EXPECT_EQ(sent(0, udp4(kB1, "192.0.2.11", 5353, request.sport())),
            Flows{"udp 203.0.113.54:53 > 198.51.100.7:5000"});
}

TEST_F(PipelineTest, ClashWithAnotherCandidateKeepsTheClientAddress) {
  tables_.services["dns2"] = {.cluster_ip = "10.96.0.3",
                              .vip = "203.0.113.54",
                              .port = 53,
                              .protocol = core::Protocol::kUdp,
                              .endpoints = {"10.244.1.21:5353", "10.244.2.22:5353"}};
  apply();
  sent(0, udp4(kClient, "203.0.113.53", 5000, 53));
  EXPECT_EQ(sent(0, udp4(kClient, "203.0.113.54", 5000, 53)),
            Flows{"udp 198.51.100.7:5000 > 10.244.2.22:5353"});
}

}  // namespace
}  // namespace sluice::test
