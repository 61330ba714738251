#include "test/unit/pipeline/fixture.h"

namespace sluice::test {
namespace {

using RefuseTest = PipelineTest;

// F20: everything that can be sent to a known VIP with an unknown port or protocol.
TEST_F(RefuseTest, WrongPortAndProtocolNeverReachABackend) {
  const auto eth = [] { return PacketBuilder().eth(); };
  const std::vector<Bytes> frames = {
      tcp4(kClient, kVip, 40000, 81, kSyn),
      udp4(kClient, kVip, 40000, 80),
      eth().ipv4(kClient, kVip).echo_request(1, 1).build(),
      eth().ipv4(kClient, kVip).protocol(47).payload(40).build(),
      eth().ipv4(kClient, kVip).protocol(50).payload(40).build(),
      eth().ipv4(kClient, kVip).id(7).fragment(0, true).udp(40000, 81).payload(64).build(),
      eth().ipv4(kClient, kVip).id(7).fragment(72, false).protocol(17).payload(64).build(),
      eth().ipv4(kClient, kVip).tcp(40000, 80, kSyn).cut_to(14 + 20 + 12).build(),
      eth().ipv4(kClient, kVip).ipv4_options({1, 1, 1, 0}).tcp(40000, 81, kSyn).build(),
      eth().ipv4(kClient, kVip).udp(40000, 81).build()};
  for (const Bytes& frame : frames) {
    for (const std::string& flow : flows(group_.exchange(0, frame))) {
      EXPECT_EQ(flow.find("10.244"), std::string::npos) << flow;
    }
    EXPECT_EQ(group_.balance_error(), "");
  }
  EXPECT_EQ(group_.connections(), 0u);
  for (const SentFrame& f : group_.take_to_host()) {
    EXPECT_EQ(PacketView(f.bytes).dst(), kVip);
  }
}

// F21: what nobody declared never goes back to the wire.
TEST_F(RefuseTest, UnmatchedTrafficToAVipIsTheHosts) {
  for (const Bytes& frame : {tcp4(kClient, kVip, 40000, 81, kSyn), udp4(kClient, kVip, 1, 9999)}) {
    EXPECT_TRUE(group_.exchange(0, frame).empty());
  }
  EXPECT_EQ(group_.take_to_host().size(), 2u);
  EXPECT_EQ(count(Counter::kHostPass), 2u);
}

// F103: nobody on the wire has an address of a Service, so such a packet opens nothing.
TEST_F(RefuseTest, SourcesThatAreServiceAddressesOpenNothing) {
  const std::vector<Bytes> frames = {
      tcp4(kVip, "10.96.0.1", 40000, 80, kSyn),
      tcp4("203.0.113.53", kVip, 40000, 80, kSyn),
      udp4("10.96.0.1", "203.0.113.53", 40000, 53),
      tcp6(kVip6, "fd00:96::1", 40000, 80, kSyn),
      PacketBuilder().eth().ipv4(kVip, "203.0.113.53").id(7).fragment(0, true).udp(4000, 53)
          .payload(64).build()};
  for (const Bytes& frame : frames) {
    const auto before = count(Counter::kRuleMartianSource);
    EXPECT_TRUE(group_.exchange(0, frame).empty());
    EXPECT_EQ(count(Counter::kRuleMartianSource), before + 1) << PacketView(frame).flow();
  }
  EXPECT_EQ(group_.connections(), 0u);
  EXPECT_TRUE(group_.take_to_host().empty());
}

TEST_F(RefuseTest, ServiceAddressesAsSourcesGetNoResetEither) {
  tables_.services["web"].endpoints = {};
  apply();
  EXPECT_TRUE(sent(0, tcp4("203.0.113.53", kVip, 40000, 80, kSyn)).empty());
  EXPECT_EQ(count(Counter::kRuleMartianSource), 1u);
}

TEST_F(RefuseTest, TheHostItselfMaySendFromAServiceAddress) {
  group_.inject(0, tcp4("203.0.113.53", kVip, 40000, 80, kSyn), 0, pipeline::Origin::kHost);
  group_.settle();
  EXPECT_EQ(group_.take_sent().size(), 1u);
  EXPECT_EQ(count(Counter::kRuleMartianSource), 0u);
}

// The address may be given to a host afterwards.
TEST_F(RefuseTest, TheAddressOfAServiceThatLeftIsAClientLikeAnyOther) {
  tables_.announce_vips = true;
  apply();
  tables_.services.erase("dns");
  apply();
  group_.settle();
  (void)group_.take_sent();  // announcements
  EXPECT_EQ(sent(0, tcp4("203.0.113.53", kVip, 40000, 80, kSyn)).size(), 1u);
}

TEST_F(RefuseTest, StrayClusterIpTrafficIsRefused) {
  const auto reset = group_.exchange(0, tcp4(kClient, "10.96.0.1", 40000, 81, kSyn));
  ASSERT_EQ(flows(reset), Flows{"tcp 10.96.0.1:81 > 198.51.100.7:40000"});
  EXPECT_EQ(PacketView(reset[0].bytes).tcp_flags(), kRst | kAck);
  const auto icmp = group_.exchange(0, udp4(kClient, "10.96.0.1", 40000, 81));
  ASSERT_EQ(flows(icmp), Flows{"icmp 10.96.0.1 > 198.51.100.7"});
  EXPECT_EQ(PacketView(icmp[0].bytes).icmp_type(), 3);
  EXPECT_EQ(PacketView(icmp[0].bytes).icmp_code(), 3);
  EXPECT_EQ(PacketView(icmp[0].bytes).eth_dst(), kPeerMac);
}

TEST_F(RefuseTest, ServiceWithoutEndpointsFailsFast) {
  tables_.services["web"].endpoints = {};
  tables_.services["web6"].endpoints = {};
  apply();
  EXPECT_EQ(sent(0, tcp4(kClient, kVip, 40000, 80, kSyn)),
            Flows{"tcp 203.0.113.10:80 > 198.51.100.7:40000"});
  EXPECT_EQ(sent(0, tcp6(kClient6, kVip6, 40000, 80, kSyn)),
            Flows{"tcp [fd00:203::10]:80 > [fd00:198::7]:40000"});
  EXPECT_EQ(count(Counter::kRejectRst), 2u);
}

TEST_F(RefuseTest, SourceRangesDropInSilence) {
  tables_.services["web"].sources = {"192.0.2.0/24"};
  apply();
  EXPECT_TRUE(group_.exchange(0, tcp4(kClient, kVip, 40000, 80, kSyn)).empty());
  EXPECT_EQ(count(Counter::kRuleSourceNotAllowed), 1u);
}

// F13: a segment of a connection nobody knows.
TEST_F(RefuseTest, UnknownSegmentToAVipIsReset) {
  EXPECT_EQ(sent(0, tcp4(kClient, kVip, 40000, 80, kAck)),
            Flows{"tcp 203.0.113.10:80 > 198.51.100.7:40000"});
  EXPECT_EQ(count(Counter::kRejectRst), 1u);
  EXPECT_TRUE(group_.exchange(0, tcp4(kClient, kVip, 40000, 80, kRst)).empty());
  EXPECT_EQ(count(Counter::kRejectNoAnswer), 1u);
}

// F24: answers of a backend without an entry never leave by a port.
TEST_F(RefuseTest, SegmentOfABackendWithoutAnEntryIsTheHosts) {
  EXPECT_TRUE(group_.exchange(0, tcp4(kB1, kClient, 8080, 40000, kAck)).empty());
  EXPECT_TRUE(group_.exchange(0, tcp4(kB1, "192.0.2.11", 8080, 50000, kAck)).empty());
  EXPECT_EQ(group_.take_to_host().size(), 2u);
  EXPECT_EQ(count(Counter::kHostNoEntry), 2u);
}

TEST_F(RefuseTest, BadFramesAreDroppedByName) {
  const auto eth = [] { return PacketBuilder().eth(); };
  group_.exchange(0, eth().ipv4(kClient, kVip).tcp(1, 80, kSyn).wrong_ip_checksum().build());
  group_.exchange(0, eth().ipv4("127.0.0.1", kVip).tcp(1, 80, kSyn).build());
  group_.exchange(0, eth().ipv4(kVip, kVip).tcp(80, 80, kSyn).build());
  group_.exchange(0, Bytes{1, 2, 3});
  group_.exchange(0, eth().ipv4(kClient, kVip).udp(1, 80).payload(64).cut_to(60).build());
  EXPECT_EQ(count(Counter::kParseBadIpChecksum), 1u);
  EXPECT_EQ(count(Counter::kParseMartian), 2u);
  EXPECT_EQ(count(Counter::kParseTruncatedEthernet), 1u);
  EXPECT_EQ(count(Counter::kParseTruncatedFrame), 1u);
  EXPECT_EQ(group_.connections(), 0u);
}

}  // namespace
}  // namespace sluice::test
