// Extension headers and fragments.

#include "test/unit/core_net/net_test.h"

namespace sluice::core {
namespace {

using test::Bytes;
using test::PacketBuilder;

// F25: legal chains end at the right offset.
TEST(ParseIpv6Chain, FindsPortsBehindExtensionHeaders) {
  const std::pair<Bytes, int> cases[] = {
      {v6().hop_by_hop().tcp(1000, 80).build(), 62},
      {v6().destination_options(3).tcp(1000, 80).build(), 86},
      {v6().hop_by_hop(1).destination_options().tcp(1000, 80).build(), 78},
      {v6().fragment6(0, false).tcp(1000, 80).build(), 62},  // atomic fragment
      {v6().routing(2, 0).tcp(1000, 80).build(), 78},
      {v6().hop_by_hop()
           .routing(4, 0)
           .fragment6(0, false)
           .destination_options()
           .tcp(1000, 80)
           .build(),
       102},
  };
  for (const auto& [frame, offset] : cases) {
    const ParsedFrame out = parse(frame);
    EXPECT_EQ(out.kind, FrameKind::kFlow6);
    EXPECT_EQ(out.l4_offset, offset);
    EXPECT_EQ(out.key6, key6("fd00::1", 1000, "fd00::2", 80, 6));
    EXPECT_EQ(out.protocol, 6);
    EXPECT_EQ(out.tcp_flags, kTcpAck);
  }
}

// F25: eight headers pass, nine do not.
TEST(ParseIpv6Chain, LimitsTheNumberOfHeaders) {
  PacketBuilder eight = v6();
  for (int i = 0; i < 8; ++i) {
    eight.destination_options();
  }
  PacketBuilder nine = eight;
  EXPECT_EQ(parse(eight.tcp(1, 2).build()).kind, FrameKind::kFlow6);
  EXPECT_EQ(parse(nine.destination_options().tcp(1, 2).build()).error,
            ParseError::kForbiddenHeader);
}

// F25: forbidden headers.
TEST(ParseIpv6Chain, RefusesForbiddenHeaders) {
  EXPECT_EQ(parse(v6().routing(0, 1).tcp(1, 2).build()).error, ParseError::kForbiddenHeader);
  EXPECT_EQ(parse(v6().routing(0, 0).tcp(1, 2).build()).error, ParseError::kForbiddenHeader);
  EXPECT_EQ(parse(v6().destination_options().hop_by_hop().tcp(1, 2).build()).error,
            ParseError::kForbiddenHeader);
  EXPECT_EQ(parse(v6().fragment6(0, false).fragment6(0, true).tcp(1, 2).build()).error,
            ParseError::kForbiddenHeader);
}

// F25: a chain that runs past the packet.
TEST(ParseIpv6Chain, RefusesChainsThatRunPastThePacket) {
  Bytes frame = v6().hop_by_hop().tcp(1, 2).build();
  frame[55] = 200;
  EXPECT_EQ(parse(frame).error, ParseError::kTruncatedIp);
  EXPECT_EQ(parse(v6().ip_length(7).hop_by_hop().tcp(1, 2).build()).error,
            ParseError::kTruncatedIp);
  EXPECT_EQ(parse(v6().ip_length(8).hop_by_hop().tcp(1, 2).build()).error,
            ParseError::kTruncatedL4);
}

// F25: no ports from option bytes.
TEST(ParseIpv6Chain, DoesNotTakeOtherHeadersForPorts) {
  const ParsedFrame none = parse(v6().hop_by_hop().payload(40).build());
  EXPECT_EQ(none.kind, FrameKind::kOtherIp);
  EXPECT_EQ(none.protocol, 59);
  EXPECT_EQ(none.key6, key6("fd00::1", 0, "fd00::2", 0, 59));
  EXPECT_EQ(parse(v6().routing(4, 1).tcp(1, 2).build()).kind, FrameKind::kOtherIp);
}

TEST(ParseFragment, FirstPieceHasPortsLaterOnesHaveNone) {
  for (const bool is_v6 : {false, true}) {
    const Bytes whole = (is_v6 ? v6() : v4()).udp(1000, 53).payload(3000).build();
    const auto pieces = test::fragment_frame(whole, 1300, 77);
    ASSERT_EQ(pieces.size(), 3u);
    std::uint32_t at = 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const ParsedFrame out = parse(pieces[i]);
      ASSERT_EQ(out.kind, is_v6 ? FrameKind::kFragment6 : FrameKind::kFragment4);
      EXPECT_EQ(out.protocol, 17);
      EXPECT_EQ(is_v6 ? out.key6.dport.host() : out.key4.dport.host(), i == 0 ? 53 : 0);
      EXPECT_EQ(out.l4_offset != 0, i == 0);
      const FragmentInfo info = fragment_info(pieces[i].data(), out);
      EXPECT_EQ(to_string(info.src), is_v6 ? "fd00::1" : "10.0.0.1");
      EXPECT_EQ(to_string(info.dst), is_v6 ? "fd00::2" : "10.0.0.2");
      EXPECT_EQ(info.id, 77u);
      EXPECT_EQ(info.protocol, is_v6 ? 44 : 17);
      EXPECT_EQ(info.has_ports, i == 0);
      EXPECT_EQ(info.more, i != 2);
      EXPECT_EQ(info.offset, at);
      at += info.length;
    }
    EXPECT_EQ(at, 3008u);
  }
}

TEST(ParseFragment, ExtensionHeadersMaySurroundTheFragmentHeader) {
  const Bytes first = v6().hop_by_hop()
                          .fragment6(0, true, 5)
                          .destination_options()
                          .udp(1000, 53)
                          .payload(8)
                          .build();
  const ParsedFrame out = parse(first);
  EXPECT_EQ(out.kind, FrameKind::kFragment6);
  EXPECT_EQ(out.key6.dport.host(), 53);
  const FragmentInfo info = fragment_info(first.data(), out);
  EXPECT_EQ(info.id, 5u);
  EXPECT_EQ(info.length, 8 + 16);
  const Bytes later = v6().hop_by_hop().fragment6(24, false, 5).protocol(60).payload(8).build();
  const ParsedFrame out2 = parse(later);
  EXPECT_EQ(out2.kind, FrameKind::kFragment6);
  EXPECT_EQ(out2.l4_offset, 0);
  EXPECT_EQ(fragment_info(later.data(), out2).offset, 24);
}

TEST(ParseFragment, OfIcmpHasNoPorts) {
  const ParsedFrame out = parse(v4().fragment(0, true).echo_request(1, 2).payload(8).build());
  EXPECT_EQ(out.kind, FrameKind::kFragment4);
  EXPECT_EQ(out.key4.sport.host(), 0);
}

// RFC 1858, RFC 3128.
TEST(ParseFragment, RefusesTinyAndOverlappingTricks) {
  EXPECT_EQ(parse(v4().fragment(0, true).ip_length(36).tcp(1, 2).build()).error,
            ParseError::kTruncatedL4);
  EXPECT_EQ(parse(v6().fragment6(0, true).ip_length(8 + 16).tcp(1, 2).build()).error,
            ParseError::kTruncatedL4);
  EXPECT_EQ(parse(v4().fragment(8, false).protocol(6).payload(20).build()).error,
            ParseError::kForbiddenHeader);
  EXPECT_EQ(parse(v6().fragment6(8, false).protocol(6).payload(20).build()).error,
            ParseError::kForbiddenHeader);
  EXPECT_EQ(parse(v4().fragment(8, false).protocol(17).payload(20).build()).kind,
            FrameKind::kFragment4);
}

TEST(ParseFragment, RefusesPiecesThatEndBehindTheLargestPacket) {
  EXPECT_EQ(parse(v4().fragment(65528, false).protocol(17).payload(20).build()).error,
            ParseError::kForbiddenHeader);
  EXPECT_EQ(parse(v6().fragment6(65528, false).protocol(17).payload(8).build()).error,
            ParseError::kForbiddenHeader);
  EXPECT_EQ(parse(v6().fragment6(65528, false).protocol(17).payload(7).build()).kind,
            FrameKind::kFragment6);
}

}  // namespace
}  // namespace sluice::core
