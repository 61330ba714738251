#include <map>

#include "dataplane/core/net/headers.h"
#include "test/unit/pipeline/fixture.h"

namespace sluice::test {
namespace {

class NeighbourTest : public PipelineTest {
 protected:
  NeighbourTest() {
    tables_.announce_vips = true;
    apply();
    group_.run_ms(4000, 500);  // the announcements are over
    group_.take_sent();
  }
};

// F37
TEST_F(NeighbourTest, ArpForAVipIsAnsweredWhileTheServiceIsThere) {
  const Bytes request =
      PacketBuilder().eth(kPeerMac, kBroadcastMac).arp_request("198.51.100.1", kVip).build();
  const auto out = group_.exchange(0, request);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].bytes, PacketBuilder()
                              .eth(kOwnMac, kPeerMac)
                              .arp(2, kOwnMac, kVip, kPeerMac, "198.51.100.1")
                              .build());
  tables_.services.erase("web");
  apply();
  EXPECT_TRUE(group_.exchange(0, request).empty());
  EXPECT_EQ(group_.take_to_host().size(), 1u);
}

TEST_F(NeighbourTest, SolicitationForAVipIsAnswered) {
  const auto out = group_.exchange(
      0,
      PacketBuilder().eth().ipv6("fd00:198::1", kVip6, 255).neighbor_solicitation(kVip6).build());
  ASSERT_EQ(out.size(), 1u);
  const PacketView answer(out[0].bytes);
  EXPECT_EQ(answer.icmp_type(), 136);
  EXPECT_EQ(answer.ttl(), 255);
  EXPECT_EQ(answer.checksum_error(), "");
  EXPECT_EQ(answer.icmp_rest() >> 29, 3u);       // solicited, override
  EXPECT_EQ(answer.payload().size(), 16u + 8u);  // target and link-layer option
  EXPECT_EQ(count(Counter::kNdAnswered), 1u);
}

TEST_F(NeighbourTest, WhoAsksForAVipIsResolvedBeforeItIsSentAnything) {
  group_.set_resolve_neighbours(false);
  const auto ask = [&](const std::string& asker) {
    group_.exchange(0,
                    PacketBuilder().eth(kPeerMac, kBroadcastMac).arp_request(asker, kVip).build());
    return group_.take_requests();
  };
  const auto first = ask("198.51.100.1");
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(core::to_string(first[0].address), "198.51.100.1");
  EXPECT_TRUE(first[0].seen);
  (void)group_.hops().add(pipeline::PortIndex{0}, first[0].address);
  EXPECT_TRUE(ask("198.51.100.1").empty());  // known
  EXPECT_TRUE(ask("0.0.0.0").empty());       // a probe
  group_.exchange(
      0,
      PacketBuilder().eth().ipv6("fd00:198::1", kVip6, 255).neighbor_solicitation(kVip6).build());
  const auto six = group_.take_requests();
  ASSERT_EQ(six.size(), 1u);
  EXPECT_EQ(core::to_string(six[0].address), "fd00:198::1");
  group_.publisher().set_routes(
      pipeline::RouteTable({{*core::parse_cidr("0.0.0.0/0"), pipeline::PortIndex{0},
                             core::parse_address("192.0.2.1")}}));
  EXPECT_TRUE(ask("198.51.100.9").empty());  // not on the link
}

// F38
TEST_F(NeighbourTest, OtherTargetsAndForwardedSolicitationsAreNotAnswered) {
  EXPECT_TRUE(group_
                  .exchange(0, PacketBuilder()
                                   .eth()
                                   .ipv6("fd00:198::1", "fd00:198::99", 255)
                                   .neighbor_solicitation("fd00:198::99")
                                   .build())
                  .empty());
  EXPECT_TRUE(group_
                  .exchange(0, PacketBuilder()
                                   .eth()
                                   .ipv6("fd00:198::1", kVip6, 254)
                                   .neighbor_solicitation(kVip6)
                                   .build())
                  .empty());
  EXPECT_TRUE(group_
                  .exchange(0, PacketBuilder()
                                   .eth(kPeerMac, kBroadcastMac)
                                   .arp_request("198.51.100.1", "198.51.100.99")
                                   .build())
                  .empty());
  EXPECT_EQ(count(Counter::kNdInvalid), 1u);
  EXPECT_EQ(count(Counter::kHostArpNd), 2u);
}

TEST_F(NeighbourTest, ClusterIpsAreNeverAnswered) {
  EXPECT_TRUE(group_
                  .exchange(0, PacketBuilder()
                                   .eth(kPeerMac, kBroadcastMac)
                                   .arp_request("198.51.100.1", "10.96.0.1")
                                   .build())
                  .empty());
}

TEST_F(NeighbourTest, EchoToAVipIsAnsweredOfBothFamilies) {
  const auto out = group_.exchange(
      0, PacketBuilder().eth().ipv4(kClient, kVip).echo_request(7, 1).payload(56).build());
  ASSERT_EQ(flows(out), Flows{"icmp 203.0.113.10 > 198.51.100.7"});
  EXPECT_EQ(PacketView(out[0].bytes).icmp_type(), 0);
  EXPECT_EQ(PacketView(out[0].bytes).eth_dst(), kPeerMac);
  const auto six = group_.exchange(
      0, PacketBuilder().eth().ipv6(kClient6, kVip6).echo_request(7, 1).payload(56).build());
  ASSERT_EQ(six.size(), 1u);
  EXPECT_EQ(PacketView(six[0].bytes).icmp_type(), 129);
  EXPECT_EQ(PacketView(six[0].bytes).checksum_error(), "");
}

TEST_F(NeighbourTest, NewVipIsToldThriceAndOldOnesAreNot) {
  tables_.services["late"] = {
      .cluster_ip = "10.96.0.9", .vip = "203.0.113.99", .endpoints = {"10.244.1.21:8080"}};
  tables_.services["late6"] = {
      .cluster_ip = "fd00:96::9", .vip = "fd00:203::99", .endpoints = {"[fd00:244::21]:8080"}};
  apply();
  group_.run_ms(10'000, 500);
  const auto out = group_.take_sent();
  EXPECT_EQ(out.size(), 6u);
  for (const SentFrame& f : out) {
    EXPECT_EQ(PacketView(f.bytes).checksum_error(), "");
  }
  EXPECT_EQ(group_.balance_error(), "");
}

/// IPv4 addresses that gratuitous ARP told of, and how often.
std::map<std::uint32_t, int> told(const std::vector<SentFrame>& frames) {
  std::map<std::uint32_t, int> all;
  for (const SentFrame& f : frames) {
    const std::uint8_t* sender = f.bytes.data() + 28;
    ++all[core::load_be32(sender)];
  }
  return all;
}

class ManyVipsTest : public NeighbourTest {
 protected:
  void add_vips(const std::string& prefix, int count) {
    for (int n = 1; n <= count; ++n) {
      const std::string last = prefix + std::to_string(n);
      tables_.services[last] = {
          .cluster_ip = "10." + last, .vip = "203." + last, .endpoints = {"10.244.1.21:8080"}};
    }
  }
  void views(int count) {
    for (int n = 0; n < count; ++n) {
      apply();
      group_.advance_ms(2);
      group_.step(0);
    }
  }
};

// Every view once began the list anew, and its end was never reached.
TEST_F(ManyVipsTest, AllAreToldThriceUnderAnEndlessStreamOfViews) {
  add_vips("97.0.", 100);
  views(1100);
  const auto all = told(group_.take_sent());
  EXPECT_EQ(all.size(), 100u);
  for (const auto& [address, times] : all) {
    EXPECT_EQ(times, 3) << address;
  }
}

TEST_F(ManyVipsTest, OnesThatAppearWhileOthersAreToldAreToldAtOnceAndAllThrice) {
  for (int n = 0; n < 8; ++n) {
    add_vips("97." + std::to_string(n) + ".", 2);
    views(2);
    EXPECT_EQ(told(group_.take_sent()).size(), n < 4 ? 2u : 0u) << n;
  }
  group_.run_ms(10'000, 2);
  const auto all = told(group_.take_sent());
  EXPECT_EQ(all.size(), 16u);
  for (const auto& [address, times] : all) {
    EXPECT_EQ(times, (address >> 8 & 0xff) < 4 ? 2 : 3) << address;
  }
}

}  // namespace
}  // namespace sluice::test
