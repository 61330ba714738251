#include "test/unit/pipeline/fixture.h"

namespace sluice::test {
namespace {

using ForwardTest = PipelineTest;

TEST_F(ForwardTest, SynIsTranslatedToABackendAndTheAnswerBack) {
  const auto out = group_.exchange(0, tcp4(kClient, kVip, 40000, 80, kSyn));
  ASSERT_EQ(flows(out), Flows{"tcp 198.51.100.7:40000 > 10.244.1.21:8080"});
  EXPECT_EQ(PacketView(out[0].bytes).ttl(), 63);
  EXPECT_EQ(PacketView(out[0].bytes).eth_dst(), kPeerMac);
  EXPECT_EQ(PacketView(out[0].bytes).eth_src(), kOwnMac);
  EXPECT_EQ(sent(0, tcp4(kB1, kClient, 8080, 40000, kSyn | kAck)),
            Flows{"tcp 203.0.113.10:80 > 198.51.100.7:40000"});
  EXPECT_EQ(count(Counter::kConnCreated), 1u);
  EXPECT_EQ(count(Counter::kConnHits), 1u);
}

TEST_F(ForwardTest, EstablishedPacketsOfBothDirectionsKeepTheirBackend) {
  const std::string backend = establish(40000);
  for (int n = 0; n < 5; ++n) {
    EXPECT_EQ(sent(0, tcp4(kClient, kVip, 40000, 80, kAck | kPsh)),
              Flows{"tcp 198.51.100.7:40000 > " + backend + ":8080"});
    EXPECT_EQ(sent(0, tcp4(backend, kClient, 8080, 40000, kAck)),
              Flows{"tcp 203.0.113.10:80 > 198.51.100.7:40000"});
  }
  EXPECT_EQ(group_.connections(), 1u);
}

TEST_F(ForwardTest, RoundRobinSpreadsNewFlows) {
  std::size_t first = 0;
  for (std::uint16_t n = 0; n < 20; ++n) {
    first += establish(static_cast<std::uint16_t>(41000 + n)) == kB1 ? 1 : 0;
  }
  EXPECT_EQ(first, 10u);
  EXPECT_EQ(group_.endpoint_use(tables_.id("web", "10.244.1.21:8080")).active, 10u);
  EXPECT_EQ(group_.endpoint_use(tables_.id("web", "10.244.2.22:8080")).total, 10u);
}

TEST_F(ForwardTest, UdpBothWays) {
  EXPECT_EQ(sent(0, udp4(kClient, "203.0.113.53", 5000, 53)),
            Flows{"udp 198.51.100.7:5000 > 10.244.1.21:5353"});
  EXPECT_EQ(sent(0, udp4(kB1, kClient, 5353, 5000)),
            Flows{"udp 203.0.113.53:53 > 198.51.100.7:5000"});
}

TEST_F(ForwardTest, UdpWithoutChecksumStaysWithoutChecksum) {
  const auto out = group_.exchange(0, PacketBuilder()
                                          .eth()
                                          .ipv4(kClient, "203.0.113.53")
                                          .udp(5000, 53)
                                          .payload(4)
                                          .no_udp_checksum()
                                          .build());
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(PacketView(out[0].bytes).l4()[6], 0);
  EXPECT_EQ(PacketView(out[0].bytes).l4()[7], 0);
}

TEST_F(ForwardTest, Ipv6BothWays) {
  EXPECT_EQ(sent(0, tcp6(kClient6, kVip6, 40000, 80, kSyn)),
            Flows{"tcp [fd00:198::7]:40000 > [fd00:244::21]:8080"});
  EXPECT_EQ(sent(0, tcp6(kB6, kClient6, 8080, 40000, kSyn | kAck)),
            Flows{"tcp [fd00:203::10]:80 > [fd00:198::7]:40000"});
}

TEST_F(ForwardTest, NodePortOnANodeAddress) {
  EXPECT_EQ(sent(0, tcp4(kClient, "192.0.2.11", 40000, 30080, kSyn)),
            Flows{"tcp 198.51.100.7:40000 > 10.244.1.21:8080"});
}

TEST_F(ForwardTest, SynAndItsDataInOneBurstMakeOneConnection) {
  group_.inject(0, tcp4(kClient, kVip, 40000, 80, kSyn));
  group_.inject(0, tcp4(kClient, kVip, 40000, 80, kAck));
  group_.settle();
  EXPECT_EQ(flows(group_.take_sent()), (Flows{"tcp 198.51.100.7:40000 > 10.244.1.21:8080",
                                              "tcp 198.51.100.7:40000 > 10.244.1.21:8080"}));
  EXPECT_EQ(count(Counter::kConnCreated), 1u);
}

TEST_F(ForwardTest, ConnectionEndsAndIsForgotten) {
  const std::string backend = establish(40000);
  group_.exchange(0, tcp4(kClient, kVip, 40000, 80, kFin | kAck));
  group_.exchange(0, tcp4(backend, kClient, 8080, 40000, kFin | kAck));
  group_.run_ms(61'000, 500);
  EXPECT_EQ(group_.connections(), 0u);
  EXPECT_EQ(group_.endpoint_use(tables_.id("web", backend + ":8080")).active, 0u);
  EXPECT_EQ(count(Counter::kConnExpired), 1u);
}

// F4, F19: a SYN on a finished connection is scheduled anew in the same packet.
TEST_F(ForwardTest, SynThatReusesAFinishedPortIsNeverDropped) {
  for (int round = 0; round < 6; ++round) {
    const std::string backend = establish(40000);
    ASSERT_TRUE(backend == kB1 || backend == kB2) << backend;
    group_.exchange(0, tcp4(backend, kClient, 8080, 40000, kFin | kAck));
    group_.exchange(0, tcp4(kClient, kVip, 40000, 80, kFin | kAck));
  }
  EXPECT_EQ(count(Counter::kConnReused), 5u);
  EXPECT_EQ(group_.connections(), 1u);
}

TEST_F(ForwardTest, ExpiredTtlIsAnsweredAndCounted) {
  establish(40000);
  const auto out = group_.exchange(0, tcp4(kClient, kVip, 40000, 80, kAck, 1));
  ASSERT_EQ(flows(out), Flows{"icmp 192.0.2.11 > 198.51.100.7"});
  EXPECT_EQ(PacketView(out[0].bytes).icmp_type(), 11);
  EXPECT_EQ(count(Counter::kTtlAnswered), 1u);
}

TEST_F(ForwardTest, ErrorsOfOursAreLimited) {
  establish(40000);
  for (int n = 0; n < 400; ++n) {
    group_.inject(0, tcp4(kClient, kVip, 40000, 80, kAck, 1));
  }
  group_.settle();
  EXPECT_EQ(count(Counter::kTtlAnswered) + count(Counter::kTtlRateLimited), 400u);
  EXPECT_GT(count(Counter::kTtlRateLimited), 100u);
}

TEST_F(ForwardTest, TooBigForTheWayOutIsReportedWithTheMtu) {
  establish(40000);
  auto ports = group_.default_ports();
  ports[0].mtu = 1400;
  group_.publisher().set_ports(ports);
  const auto out = group_.exchange(0, PacketBuilder()
                                          .eth()
                                          .ipv4(kClient, kVip)
                                          .dont_fragment()
                                          .tcp(40000, 80, kAck)
                                          .payload(1400)
                                          .build());
  ASSERT_EQ(out.size(), 1u);
  const PacketView error(out[0].bytes);
  EXPECT_EQ(error.icmp_type(), 3);
  EXPECT_EQ(error.icmp_code(), 4);
  EXPECT_EQ(error.icmp_rest(), 1400u);
  EXPECT_TRUE(
      group_
          .exchange(
              0,
              PacketBuilder().eth().ipv4(kClient, kVip).tcp(40000, 80, kAck).payload(1400).build())
          .empty());
  EXPECT_EQ(count(Counter::kHopTooBig), 1u);
}

TEST_F(ForwardTest, UnfinishedChecksumsOfAKernelFedPortAreCompleted) {
  auto ports = group_.default_ports();
  ports[0].rx_partial_csum = true;
  group_.publisher().set_ports(ports);
  EXPECT_EQ(sent(0, PacketBuilder()
                        .eth()
                        .ipv4(kClient, kVip)
                        .tcp(40000, 80, kSyn)
                        .payload(33)
                        .partial_checksum()
                        .build()),
            Flows{"tcp 198.51.100.7:40000 > 10.244.1.21:8080"});
  EXPECT_EQ(count(Counter::kRxPartialCsum), 1u);
}

TEST_F(ForwardTest, FramesForOthersAndMulticastGoToTheHostUnchanged) {
  const Bytes foreign = PacketBuilder()
                            .eth(kPeerMac, "02:00:00:00:99:99")
                            .ipv4(kClient, kVip)
                            .tcp(40000, 80, kSyn)
                            .build();
  EXPECT_TRUE(group_.exchange(0, foreign).empty());
  const auto host = group_.take_to_host();
  ASSERT_EQ(host.size(), 1u);
  EXPECT_EQ(host[0].bytes, foreign);
  EXPECT_EQ(count(Counter::kHostForeignMac), 1u);
}

TEST_F(ForwardTest, HostFramesThatAreNotOursLeaveUnchanged) {
  const Bytes frame = PacketBuilder()
                          .eth(kOwnMac, kPeerMac)
                          .ipv4("192.0.2.11", "198.51.100.1")
                          .tcp(50000, 22, kSyn)
                          .build();
  group_.inject(0, frame, 0, pipeline::Origin::kHost);
  group_.settle();
  const auto out = group_.take_sent();
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].bytes, frame);
}

TEST_F(ForwardTest, HostFramesToAVipAreForwarded) {
  group_.inject(0, tcp4("192.0.2.11", kVip, 50000, 80, kSyn), 0, pipeline::Origin::kHost);
  group_.settle();
  const auto out = flows(group_.take_sent());
  ASSERT_EQ(out.size(), 1u);
  EXPECT_NE(out[0].find("> 10.244."), std::string::npos) << out[0];
}

TEST_F(ForwardTest, FullTapRingDropsAndCounts) {
  group_.io(0).host_ring_room(0);
  group_.exchange(0, udp4(kClient, "192.0.2.11", 1, 9));
  EXPECT_EQ(count(Counter::kHostRingFull), 1u);
}

class BeforeTheFirstTable : public ::testing::Test {};
TEST_F(BeforeTheFirstTable, EverythingIsTheHosts) {
  SteppedGroup group;
  EXPECT_TRUE(group.exchange(0, tcp4(kClient, kVip, 40000, 80, kSyn)).empty());
  EXPECT_EQ(group.take_to_host().size(), 1u);
  EXPECT_EQ(group.balance_error(), "");
}

// Which ports a kernel feeds is not known yet; the host would drop the frame.
TEST_F(BeforeTheFirstTable, UnfinishedChecksumsAreCompleted) {
  SteppedGroup group;
  group.inject(0, PacketBuilder()
                      .eth()
                      .ipv4(kClient, "192.0.2.11")
                      .tcp(40000, 10256, kSyn)
                      .partial_checksum()
                      .build());
  group.settle();
  const auto host = group.take_to_host();
  ASSERT_EQ(host.size(), 1u);
  EXPECT_EQ(PacketView(host[0].bytes).checksum_error(), "");
  EXPECT_EQ(group.balance_error(), "");
}

}  // namespace
}  // namespace sluice::test
