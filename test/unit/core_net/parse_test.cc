#include "dataplane/core/net/parse.h"

#include "test/unit/core_net/net_test.h"

namespace sluice::core {
namespace {

using test::Bytes;
using test::PacketBuilder;

ParseError error_of(const Bytes& frame) {
  const ParsedFrame out = parse(frame);
  EXPECT_EQ(out.kind == FrameKind::kBad, out.error != ParseError::kNone);
  return out.error;
}

/// "10.0.0.1:1000 > 10.0.0.2:80 proto 6".
std::string key_text(const ParsedFrame& out) {
  const bool is_v4 = out.family == Family::kIpv4;
  const auto text = [&](const auto& key) {
    return to_string(out.src(), key.sport.host()) + " > " + to_string(out.dst(), key.dport.host()) +
           " proto " + std::to_string(key.proto);
  };
  return is_v4 ? text(out.key4) : text(out.key6);
}

TEST(Parse, ReadsIpv4Flow) {
  const ParsedFrame out = parse(v4().tcp(1000, 80, test::kSyn).payload(3).pad_to(60).build());
  EXPECT_EQ(out.kind, FrameKind::kFlow4);
  EXPECT_EQ(key_text(out), "10.0.0.1:1000 > 10.0.0.2:80 proto 6");
  EXPECT_EQ(out.l3_offset, 14);
  EXPECT_EQ(out.l4_offset, 34);
  EXPECT_EQ(out.ip_length, 43);
  EXPECT_EQ(out.l4_length(), 23u);
  EXPECT_EQ(out.hop_limit, 33);
  EXPECT_EQ(out.tcp_flags, kTcpSyn);
  EXPECT_FALSE(out.multicast);
}

TEST(Parse, ReadsIpv6Flow) {
  const ParsedFrame out = parse(v6().udp(1000, 53).payload(3).build());
  EXPECT_EQ(out.kind, FrameKind::kFlow6);
  EXPECT_EQ(key_text(out), "[fd00::1]:1000 > [fd00::2]:53 proto 17");
  EXPECT_EQ(out.l4_offset, 54);
  EXPECT_EQ(out.ip_length, 51);
  EXPECT_EQ(out.tcp_flags, 0);
}

TEST(Parse, ReadsSctpAndPortZero) {
  EXPECT_EQ(key_text(parse(v4().sctp(0, 7).build())), "10.0.0.1:0 > 10.0.0.2:7 proto 132");
  EXPECT_EQ(parse(v6().sctp(0, 7).build()).kind, FrameKind::kFlow6);
  EXPECT_EQ(parse(v4().udp(0, 0).build()).kind, FrameKind::kFlow4);
}

TEST(Parse, ReadsTheFirstChunkOfSctpAsSignal) {
  const auto flags = [](PacketBuilder b, Bytes chunk) {
    return parse(b.sctp(1, 7).raw(chunk).build()).tcp_flags;
  };
  EXPECT_EQ(flags(v4(), {1, 0, 0, 4}), kTcpSyn);
  EXPECT_EQ(flags(v6(), {7, 0, 0, 4}), kTcpFin);
  EXPECT_EQ(flags(v4(), {0, 3, 0, 4}), 0);
  EXPECT_EQ(flags(v4(), {}), 0);
}

TEST(Parse, KeyHasNoUndefinedBytes) {
  ParsedFrame out;
  std::memset(static_cast<void*>(&out.key6), 0xaa, sizeof out.key6);
  const Bytes frame = v4().tcp(1, 2).build();
  parse_frame(frame.data(), size_of(frame), size_of(frame), out);
  EXPECT_EQ(out.key4, key4("10.0.0.1", 1, "10.0.0.2", 2, 6));
  std::memset(static_cast<void*>(&out.key6), 0xaa, sizeof out.key6);
  const Bytes frame6 = v6().tcp(1, 2).build();
  parse_frame(frame6.data(), size_of(frame6), size_of(frame6), out);
  EXPECT_EQ(out.key6, key6("fd00::1", 1, "fd00::2", 2, 6));
}

TEST(Parse, FindsPortsBehindIpv4Options) {
  for (std::size_t size = 1; size <= 40; ++size) {
    const ParsedFrame out = parse(v4().ipv4_options(Bytes(size, 1)).udp(1000, 53).build());
    EXPECT_EQ(out.kind, FrameKind::kFlow4);
    EXPECT_EQ(out.l4_offset, 34 + (size + 3) / 4 * 4);
    EXPECT_EQ(out.key4.dport.host(), 53);
  }
}

TEST(Parse, RefusesIpv4SourceRoutes) {
  EXPECT_EQ(error_of(v4().ipv4_options({1, 131, 7, 4, 1, 2, 3, 4}).udp(1, 2).build()),
            ParseError::kForbiddenHeader);
  EXPECT_EQ(error_of(v4().ipv4_options({137, 7, 4, 1, 2, 3, 4}).udp(1, 2).build()),
            ParseError::kForbiddenHeader);
  // 131 inside another option's data is no option.
  EXPECT_EQ(error_of(v4().ipv4_options({68, 4, 131, 7}).udp(1, 2).build()), ParseError::kNone);
}

TEST(Parse, TellsKindsApart) {
  EXPECT_EQ(parse(v4().echo_request(1, 1).build()).kind, FrameKind::kIcmp4);
  EXPECT_EQ(parse(v6().echo_request(1, 1).build()).kind, FrameKind::kIcmp6);
  EXPECT_EQ(parse(v6("fe80::1", "ff02::1:ff00:2").neighbor_solicitation("fe80::2").build()).kind,
            FrameKind::kNd);
  EXPECT_EQ(parse(v6("fe80::1", "ff02::2").icmp(133, 0).build()).kind, FrameKind::kNd);
  EXPECT_EQ(parse(v6("fe80::1", "ff02::2").icmp(138, 0).build()).kind, FrameKind::kIcmp6);
  EXPECT_EQ(parse(v4().protocol(47).payload(10).build()).kind, FrameKind::kOtherIp);
  EXPECT_EQ(parse(v4().protocol(50).payload(0).build()).kind, FrameKind::kOtherIp);
  EXPECT_EQ(parse(v4().protocol(58).payload(10).build()).kind, FrameKind::kOtherIp);
  EXPECT_EQ(parse(v6().protocol(1).payload(10).build()).kind, FrameKind::kOtherIp);
  EXPECT_EQ(parse(v4().ipv4("1.1.1.1", "2.2.2.2").udp(1, 2).build()).kind, FrameKind::kOtherIp);
  EXPECT_EQ(parse(PacketBuilder().eth().arp_request("10.0.0.1", "10.0.0.2").build()).kind,
            FrameKind::kArp);
  EXPECT_EQ(parse(PacketBuilder().eth().ether_type(0x88cc).payload(40).build()).kind,
            FrameKind::kOtherEther);
  EXPECT_EQ(parse(PacketBuilder().eth().ether_type(60).payload(60).build()).kind,
            FrameKind::kOtherEther);  // 802.3 length
  EXPECT_EQ(parse(PacketBuilder().eth().vlan(5).ipv4("1.1.1.1", "2.2.2.2").udp(1, 2).build()).kind,
            FrameKind::kOtherEther);
}

TEST(Parse, GivesAddressesWithoutPortsForOtherIp) {
  EXPECT_EQ(key_text(parse(v4().echo_request(7, 9).build())), "10.0.0.1:0 > 10.0.0.2:0 proto 1");
  EXPECT_EQ(key_text(parse(v6().protocol(47).payload(9).build())),
            "[fd00::1]:0 > [fd00::2]:0 proto 47");
}

TEST(Parse, SeesGroupDestinations) {
  const Bytes frame = PacketBuilder()
                          .eth(test::kPeerMac, test::kBroadcastMac)
                          .ipv4("10.0.0.1", "10.0.0.255")
                          .udp(1, 2)
                          .build();
  EXPECT_TRUE(parse(frame).multicast);
}

TEST(Parse, RefusesBadIpHeaders) {
  Bytes frame = v4().udp(1, 2).build();
  frame[14] = 0x55;
  EXPECT_EQ(error_of(frame), ParseError::kBadIpVersion);
  frame[14] = 0x44;
  EXPECT_EQ(error_of(frame), ParseError::kTruncatedIp);
  frame[14] = 0x4f;
  EXPECT_EQ(error_of(frame), ParseError::kTruncatedIp);
  EXPECT_EQ(error_of(v4().wrong_ip_checksum().udp(1, 2).build()), ParseError::kBadIpChecksum);
  EXPECT_EQ(error_of(v4().ip_length(19).udp(1, 2).build()), ParseError::kTruncatedIp);
  Bytes frame6 = v6().udp(1, 2).build();
  frame6[14] = 0x40;
  EXPECT_EQ(error_of(frame6), ParseError::kBadIpVersion);
  EXPECT_EQ(error_of(v6().ip_length(65535).udp(1, 2).build()), ParseError::kTruncatedIp);
}

TEST(Parse, CallsFramesShorterThanTheirIpLengthTruncated) {
  EXPECT_EQ(error_of(v4().tcp(1, 2).payload(100).cut_to(153).build()), ParseError::kTruncatedFrame);
  EXPECT_EQ(error_of(v4().tcp(1, 2).payload(100).cut_to(154).build()), ParseError::kNone);
  EXPECT_EQ(error_of(v6().tcp(1, 2).payload(100).cut_to(173).build()), ParseError::kTruncatedFrame);
}

TEST(Parse, AcceptsSegmentedFramesWhoseHeadersAreContiguous) {
  const Bytes frame = v4().tcp(1, 2).build();
  ParsedFrame out;
  Bytes longer = v4().ip_length(1500).tcp(1, 2).build();
  parse_frame(longer.data(), size_of(longer), 1514, out);
  EXPECT_EQ(out.kind, FrameKind::kFlow4);
  EXPECT_EQ(out.l4_length(), 1480u);
  parse_frame(longer.data(), 53, 1514, out);
  EXPECT_EQ(out.error, ParseError::kTruncatedL4);
}

// F20: a packet cut inside the L4 header.
TEST(Parse, RefusesCutL4Headers) {
  for (std::uint16_t length = 0; length < 20; ++length) {
    EXPECT_EQ(error_of(v4().ip_length(static_cast<std::uint16_t>(20 + length)).tcp(1, 2).build()),
              ParseError::kTruncatedL4);
    EXPECT_EQ(error_of(v6().ip_length(length).tcp(1, 2).build()), ParseError::kTruncatedL4);
  }
  EXPECT_EQ(error_of(v4().ip_length(27).udp(1, 2).build()), ParseError::kTruncatedL4);
  EXPECT_EQ(error_of(v6().ip_length(11).sctp(1, 2).build()), ParseError::kTruncatedL4);
  EXPECT_EQ(error_of(v4().ip_length(27).echo_request(1, 2).build()), ParseError::kTruncatedL4);
  EXPECT_EQ(error_of(v6().ip_length(3).echo_request(1, 2).build()), ParseError::kTruncatedL4);
  EXPECT_EQ(error_of(PacketBuilder().eth().arp_request("1.1.1.1", "2.2.2.2").cut_to(41).build()),
            ParseError::kTruncatedEthernet);
}

TEST(Parse, RefusesTcpDataOffsetsThatDoNotFit) {
  Bytes frame = v4().tcp(1, 2).build();
  frame[46] = 0x40;
  EXPECT_EQ(error_of(frame), ParseError::kTruncatedL4);
  frame[46] = 0x60;
  EXPECT_EQ(error_of(frame), ParseError::kTruncatedL4);
  EXPECT_EQ(error_of(v4().tcp(1, 2).tcp_options({1, 1, 1, 1}).build()), ParseError::kNone);
}

TEST(Parse, EveryPrefixOfAFrameIsRefusedOrShortened) {
  for (const Bytes& frame :
       {v4().ipv4_options({1}).tcp(1, 2).payload(9).build(),
        v6().hop_by_hop().destination_options(1).tcp(1, 2).payload(9).build()}) {
    for (std::size_t length = 0; length < frame.size(); ++length) {
      EXPECT_EQ(
          parse(Bytes(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(length))).kind,
          FrameKind::kBad);
    }
  }
}

// F103: packets with addresses that never belong on the wire, dropped before any lookup.
TEST(Parse, RefusesMartians) {
  const std::pair<const char*, const char*> pairs4[] = {
      {"10.0.0.1", "127.0.0.1"}, {"127.0.0.1", "10.0.0.2"}, {"255.255.255.255", "10.0.0.2"},
      {"224.0.0.5", "10.0.0.2"}, {"239.1.1.1", "10.0.0.2"}, {"0.0.0.0", "10.0.0.2"},
      {"127.9.9.9", "127.1.1.1"}};
  for (const auto& [src, dst] : pairs4) {
    EXPECT_EQ(error_of(v4(src, dst).tcp(1, 10248).build()), ParseError::kMartian) << src << dst;
    EXPECT_EQ(error_of(v4(src, dst).echo_request(1, 1).build()), ParseError::kMartian);
    EXPECT_EQ(error_of(v4(src, dst).fragment(8, true).protocol(17).payload(8).build()),
              ParseError::kMartian);
  }
  const std::pair<const char*, const char*> pairs6[] = {{"fd00::1", "::1"},
                                                        {"::1", "fd00::2"},
                                                        {"ff02::1", "fd00::2"},
                                                        {"::", "fd00::2"},
                                                        {"::ffff:1.2.3.4", "fd00::2"},
                                                        {"fd00::1", "::ffff:1.2.3.4"}};
  for (const auto& [src, dst] : pairs6) {
    EXPECT_EQ(error_of(v6(src, dst).udp(1, 2).build()), ParseError::kMartian) << src << dst;
    EXPECT_EQ(error_of(v6(src, dst).echo_request(1, 1).build()), ParseError::kMartian);
  }
}

// F103: the land packet.
TEST(Parse, RefusesLandPacketsOnly) {
  EXPECT_EQ(error_of(v4("10.0.0.1", "10.0.0.1").tcp(80, 80).build()), ParseError::kMartian);
  EXPECT_EQ(error_of(v6("fd00::1", "fd00::1").udp(80, 80).build()), ParseError::kMartian);
  EXPECT_EQ(error_of(v4("10.0.0.1", "10.0.0.1").tcp(81, 80).build()), ParseError::kNone);
  EXPECT_EQ(error_of(v6("fd00::1", "fd00::1").udp(81, 80).build()), ParseError::kNone);
  EXPECT_EQ(error_of(v4("10.0.0.1", "10.0.0.2").tcp(80, 80).build()), ParseError::kNone);
  EXPECT_EQ(error_of(v6("fd00::1", "fd00::2").udp(80, 80).build()), ParseError::kNone);
}

TEST(Parse, LetsAddresslessHostsAskGroups) {
  EXPECT_EQ(error_of(v4("0.0.0.0", "255.255.255.255").udp(68, 67).build()), ParseError::kNone);
  EXPECT_EQ(error_of(v4("0.0.0.0", "224.0.0.1").protocol(2).payload(8).build()), ParseError::kNone);
  EXPECT_EQ(error_of(v6("::", "ff02::1:ff00:1").neighbor_solicitation("fd00::1", "").build()),
            ParseError::kNone);
}

TEST(Parse, AcceptsUncommonButLegalAddresses) {
  EXPECT_EQ(error_of(v4("240.0.0.1", "10.0.0.2").udp(1, 2).build()), ParseError::kNone);
  EXPECT_EQ(error_of(v6("::2", "::3").udp(1, 2).build()), ParseError::kNone);
  EXPECT_EQ(error_of(v4("10.0.0.1", "224.0.0.251").udp(5353, 5353).build()), ParseError::kNone);
}

}  // namespace
}  // namespace sluice::core
