#include "dataplane/core/net/arp_nd.h"

#include "test/unit/core_net/net_test.h"

namespace sluice::core {
namespace {

using test::Bytes;
using test::PacketBuilder;
using test::PacketView;

constexpr const char* kVipMac = "02:00:00:00:00:fe";

TEST(Arp, ReadsRequestsAndReplies) {
  const Bytes request =
      PacketBuilder().eth().arp_request("10.0.0.1", "10.0.0.9").pad_to(60).build();
  const auto packet = parse_arp(request.data());
  ASSERT_TRUE(packet);
  EXPECT_EQ(packet->operation, ArpOperation::kRequest);
  EXPECT_EQ(to_string(packet->sender), "10.0.0.1");
  EXPECT_EQ(to_string(packet->target), "10.0.0.9");
  EXPECT_EQ(to_string(packet->sender_mac), test::kPeerMac);
  const Bytes reply =
      PacketBuilder().eth().arp(2, test::kPeerMac, "10.0.0.1", kVipMac, "10.0.0.9").build();
  EXPECT_EQ(parse_arp(reply.data())->operation, ArpOperation::kReply);
}

TEST(Arp, IgnoresOtherKinds) {
  Bytes frame = PacketBuilder().eth().arp_request("10.0.0.1", "10.0.0.9").build();
  for (const std::size_t at : {14, 15, 16, 17, 18, 19, 20}) {
    Bytes other = frame;
    other[at] ^= 0x40;
    EXPECT_FALSE(parse_arp(other.data())) << at;
  }
  EXPECT_FALSE(parse_arp(
      PacketBuilder().eth().arp(3, test::kPeerMac, "1.1.1.1", kVipMac, "2.2.2.2").build().data()));
  EXPECT_FALSE(parse_arp(PacketBuilder()
                             .eth()
                             .arp(1, test::kBroadcastMac, "1.1.1.1", kVipMac, "2.2.2.2")
                             .build()
                             .data()));
}

// F37, F38: the answer to a request for an address of ours.
TEST(Arp, ReplyIsMadeInPlace) {
  Bytes frame = PacketBuilder()
                    .eth(test::kPeerMac, test::kBroadcastMac)
                    .arp_request("10.0.0.1", "10.0.0.9")
                    .pad_to(60)
                    .build();
  make_arp_reply(frame.data(), *parse_mac(kVipMac));
  EXPECT_EQ(frame, PacketBuilder()
                       .eth(kVipMac, test::kPeerMac)
                       .arp(2, kVipMac, "10.0.0.9", test::kPeerMac, "10.0.0.1")
                       .pad_to(60)
                       .build());
}

TEST(Arp, GratuitousFormsAreBroadcast) {
  Bytes frame(kArpFrameLength);
  build_gratuitous_arp(frame.data(), ip4("10.0.0.9"), *parse_mac(kVipMac),
                       GratuitousForm::kRequest);
  EXPECT_EQ(frame, PacketBuilder()
                       .eth(kVipMac, test::kBroadcastMac)
                       .arp(1, kVipMac, "10.0.0.9", "00:00:00:00:00:00", "10.0.0.9")
                       .build());
  build_gratuitous_arp(frame.data(), ip4("10.0.0.9"), *parse_mac(kVipMac), GratuitousForm::kReply);
  EXPECT_EQ(frame, PacketBuilder()
                       .eth(kVipMac, test::kBroadcastMac)
                       .arp(2, kVipMac, "10.0.0.9", kVipMac, "10.0.0.9")
                       .build());
}

PacketBuilder from_peer(const char* dst, std::uint8_t hop_limit = 255,
                        const char* src = "fe80::1") {
  return PacketBuilder().eth().ipv6(src, dst, hop_limit);
}

std::optional<NeighborSolicitation> read(const Bytes& frame) {
  return parse_neighbor_solicitation(frame.data(), size_of(frame), parse(frame));
}

TEST(NeighborDiscovery, ReadsSolicitations) {
  const auto asked =
      read(from_peer("ff02::1:ff00:10").neighbor_solicitation("fd00::10", test::kPeerMac).build());
  ASSERT_TRUE(asked);
  EXPECT_EQ(to_string(asked->target), "fd00::10");
  EXPECT_EQ(to_string(asked->src), "fe80::1");
  EXPECT_EQ(to_string(*asked->source_mac), test::kPeerMac);
  const auto unicast = read(from_peer("fd00::10").neighbor_solicitation("fd00::10", "").build());
  ASSERT_TRUE(unicast);
  EXPECT_FALSE(unicast->source_mac);
}

// F38: a hop limit below 255 came from off the link. RFC 4861 7.1.1.
TEST(NeighborDiscovery, IgnoresInvalidSolicitations) {
  EXPECT_FALSE(read(from_peer("fd00::10", 254).neighbor_solicitation("fd00::10").build()));
  EXPECT_FALSE(
      read(from_peer("fd00::10").neighbor_solicitation("fd00::10").wrong_l4_checksum().build()));
  EXPECT_FALSE(read(from_peer("fd00::10").neighbor_solicitation("ff02::1").build()));
  EXPECT_FALSE(read(from_peer("fd00::10").icmp(135, 1).payload(24).build()));
  EXPECT_FALSE(read(from_peer("fd00::10").icmp(135, 0).raw(Bytes(15)).build()));
  EXPECT_FALSE(read(from_peer("fd00::10").icmp(136, 0).raw(Bytes(24)).build()));
  Bytes zero_option(18);
  zero_option[0] = 0xfd;
  EXPECT_FALSE(read(from_peer("fd00::10").icmp(135, 0).raw(zero_option).build()));
  zero_option[17] = 2;  // longer than the message
  EXPECT_FALSE(read(from_peer("fd00::10").icmp(135, 0).raw(zero_option).build()));
  EXPECT_FALSE(read(from_peer("fd00::10").udp(1, 2).build()));
}

TEST(NeighborDiscovery, ChecksDuplicateAddressDetection) {
  EXPECT_TRUE(
      read(from_peer("ff02::1:ff00:10", 255, "::").neighbor_solicitation("fd00::10", "").build()));
  EXPECT_FALSE(
      read(from_peer("ff02::1:ff00:11", 255, "::").neighbor_solicitation("fd00::10", "").build()));
  EXPECT_FALSE(read(from_peer("ff02::1:ff00:10", 255, "::")
                        .neighbor_solicitation("fd00::10", test::kPeerMac)
                        .build()));
}

Bytes answer(const Bytes& asked) {
  Bytes out(kNeighborAdvertisementLength);
  build_neighbor_advertisement(out.data(), *read(asked), *parse_mac(kVipMac));
  return out;
}

// F38: link-layer option, solicited flag, hop limit 255.
TEST(NeighborDiscovery, AnswersTheAsker) {
  const Bytes out = answer(
      from_peer("ff02::1:ff00:10").neighbor_solicitation("fd00::10", "02:00:00:00:00:77").build());
  EXPECT_EQ(out, PacketBuilder()
                     .eth(kVipMac, "02:00:00:00:00:77")
                     .ipv6("fd00::10", "fe80::1", 255)
                     .neighbor_advertisement("fd00::10", kVipMac, 0x60)
                     .build());
  const Bytes unicast = answer(from_peer("fd00::10").neighbor_solicitation("fd00::10", "").build());
  EXPECT_EQ(PacketView(unicast).eth_dst(), test::kPeerMac);
}

TEST(NeighborDiscovery, AnswersDetectionToAllNodes) {
  const Bytes out =
      answer(from_peer("ff02::1:ff00:10", 255, "::").neighbor_solicitation("fd00::10", "").build());
  EXPECT_EQ(out, PacketBuilder()
                     .eth(kVipMac, "33:33:00:00:00:01")
                     .ipv6("fd00::10", "ff02::1", 255)
                     .neighbor_advertisement("fd00::10", kVipMac, 0x20)
                     .build());
}

TEST(NeighborDiscovery, MayAnswerOverTheSolicitation) {
  Bytes frame = from_peer("ff02::1:ff00:10").neighbor_solicitation("fd00::10").build();
  const Bytes wanted = answer(frame);
  const auto asked = read(frame);
  frame.resize(kNeighborAdvertisementLength);
  build_neighbor_advertisement(frame.data(), *asked, *parse_mac(kVipMac));
  EXPECT_EQ(frame, wanted);
}

TEST(NeighborDiscovery, AdvertisesUnasked) {
  Bytes out(kNeighborAdvertisementLength);
  build_unsolicited_advertisement(out.data(), ip6("fd00::10"), *parse_mac(kVipMac));
  EXPECT_EQ(out, PacketBuilder()
                     .eth(kVipMac, "33:33:00:00:00:01")
                     .ipv6("fd00::10", "ff02::1", 255)
                     .neighbor_advertisement("fd00::10", kVipMac, 0x20)
                     .build());
}

TEST(NeighborDiscovery, ReadsAdvertisements) {
  const Bytes frame =
      from_peer("fd00::10").neighbor_advertisement("fe80::1", test::kPeerMac, 0x60).build();
  const auto told = parse_neighbor_advertisement(frame.data(), size_of(frame), parse(frame));
  ASSERT_TRUE(told);
  EXPECT_EQ(to_string(told->target), "fe80::1");
  EXPECT_EQ(to_string(*told->target_mac), test::kPeerMac);
  EXPECT_TRUE(told->solicited);
  EXPECT_TRUE(told->override_cache);
  const Bytes group =
      from_peer("ff02::1").neighbor_advertisement("fe80::1", test::kPeerMac, 0x60).build();
  EXPECT_FALSE(parse_neighbor_advertisement(group.data(), size_of(group), parse(group)));
}

}  // namespace
}  // namespace sluice::core
