#include "dataplane/core/net/icmp.h"

#include "test/unit/core_net/net_test.h"

namespace sluice::core {
namespace {

using test::Bytes;
using test::PacketBuilder;
using test::PacketView;

/// Parses the error and its quote; the frame stays where it is.
struct Parsed {
  explicit Parsed(const Bytes& frame) : outer(parse(frame)) {
    found = parse_icmp_error(frame.data(), size_of(frame), outer, quoted);
  }
  ParsedFrame outer;
  QuotedPacket quoted;
  bool found = false;
};

void translate_error4(Bytes& frame, const char* src, const char* dst, const FlowKey4& inner) {
  const Parsed parsed(frame);
  ASSERT_TRUE(parsed.found);
  translate_icmp_error(frame.data(), size_of(frame), parsed.outer, parsed.quoted,
                       IcmpTranslation<Ipv4>{ip4(src), ip4(dst), inner});
}

void translate_error6(Bytes& frame, const char* src, const char* dst, const FlowKey6& inner) {
  const Parsed parsed(frame);
  ASSERT_TRUE(parsed.found);
  translate_icmp_error(frame.data(), size_of(frame), parsed.outer, parsed.quoted,
                       IcmpTranslation<Ipv6>{ip6(src), ip6(dst), inner});
}

PacketBuilder quoted4(int protocol) {
  PacketBuilder builder = v4("198.51.100.7", "10.1.0.1");
  protocol == 6    ? builder.tcp(40000, 8080)
  : protocol == 17 ? builder.udp(40000, 8080)
                   : builder.sctp(40000, 8080);
  return builder.payload(100);
}
PacketBuilder quoted6(int protocol) {
  PacketBuilder builder = v6("2001:db8::7", "fd00::1");
  protocol == 6    ? builder.tcp(40000, 8080)
  : protocol == 17 ? builder.udp(40000, 8080)
                   : builder.sctp(40000, 8080);
  return builder.payload(100);
}

TEST(IcmpParse, FindsTheQuotedTuple) {
  for (const std::uint8_t type :
       {std::uint8_t{3}, std::uint8_t{4}, std::uint8_t{11}, std::uint8_t{12}}) {
    const Bytes frame =
        v4("192.0.2.1", "198.51.100.7").icmp(type, 0).quote(quoted4(6).build(), 28).build();
    const Parsed parsed(frame);
    ASSERT_TRUE(parsed.found);
    EXPECT_EQ(parsed.quoted.inner.kind, FrameKind::kFlow4);
    EXPECT_EQ(parsed.quoted.inner.key4, key4("198.51.100.7", 40000, "10.1.0.1", 8080, 6));
    EXPECT_EQ(parsed.quoted.inner_l3_offset, 42);
    EXPECT_EQ(parsed.quoted.inner.l4_offset, 62);
    EXPECT_EQ(parsed.quoted.inner.tcp_flags, 0);  // not among the 8 bytes
  }
  for (std::uint8_t type = 1; type <= 4; ++type) {
    const Bytes frame =
        v6("2001:db8::1", "2001:db8::7").icmp(type, 0).quote(quoted6(6).build()).build();
    const Parsed parsed(frame);
    ASSERT_TRUE(parsed.found);
    EXPECT_EQ(parsed.quoted.inner.key6, key6("2001:db8::7", 40000, "fd00::1", 8080, 6));
    EXPECT_EQ(parsed.quoted.inner.tcp_flags, kTcpAck);
  }
}

TEST(IcmpParse, RefusesWhatIsNoErrorAboutAFlow) {
  const Bytes cause = quoted4(6).build();
  for (const std::uint8_t type :
       {std::uint8_t{0}, std::uint8_t{5}, std::uint8_t{8}, std::uint8_t{13}}) {
    EXPECT_FALSE(Parsed(v4().icmp(type, 0).quote(cause).build()).found);
  }
  EXPECT_FALSE(Parsed(v4().icmp(3, 3).quote(cause, 27).build()).found);
  EXPECT_FALSE(Parsed(v4().icmp(3, 3).quote(cause, 0).build()).found);
  EXPECT_FALSE(Parsed(v4().icmp(3, 3).quote(v4().echo_request(1, 2).build()).build()).found);
  EXPECT_FALSE(Parsed(v4().icmp(3, 3).quote(quoted6(6).build()).build()).found);
  EXPECT_FALSE(Parsed(v6().icmp(129, 0).quote(quoted6(6).build()).build()).found);
  EXPECT_FALSE(Parsed(v6().icmp(1, 4).quote(quoted6(6).build(), 47).build()).found);
  EXPECT_FALSE(Parsed(v4().tcp(1, 2).quote(cause).build()).found);
}

// F36: bytes of a later fragment are no ports.
TEST(IcmpParse, NeverTakesPortsFromAQuotedLaterFragment) {
  const Bytes live = quoted4(17).build();
  Bytes piece =
      v4("198.51.100.7", "10.1.0.1").fragment(1480, false).protocol(17).quote(live).build();
  const Parsed parsed(v4().icmp(3, 4, 1400).quote(piece).build());
  EXPECT_FALSE(parsed.found);
  EXPECT_TRUE(parsed.quoted.later_fragment);
  const Bytes piece6 = v6().fragment6(1448, false).protocol(17).payload(64).build();
  const Parsed parsed6(v6().icmp(2, 0, 1400).quote(piece6).build());
  EXPECT_FALSE(parsed6.found);
  EXPECT_TRUE(parsed6.quoted.later_fragment);
  const Parsed first(v4().icmp(3, 4).quote(test::fragment_frame(live, 60, 1)[0]).build());
  EXPECT_TRUE(first.found);
}

// F7: the client's copy quotes what the client sent; MTU and checksums are right. Also code 3, and
// a router that quotes 8 bytes only.
TEST(IcmpTranslate, PutsTheQuoteIntoTheReceiversView4) {
  for (const int protocol : {6, 17, 132}) {
    for (const std::size_t limit : {28, 40, 65535}) {
      for (const std::uint8_t code : {std::uint8_t{3}, std::uint8_t{4}}) {
        Bytes frame = v4("192.0.2.1", "198.51.100.7")
                          .icmp(3, code, 1400)
                          .quote(quoted4(protocol).build(), limit)
                          .build();
        const auto proto = static_cast<std::uint8_t>(protocol);
        translate_error4(frame, "192.0.2.1", "198.51.100.7",
                         key4("198.51.100.7", 40000, "203.0.113.10", 80, proto));
        const PacketView view(frame);
        EXPECT_EQ(view.checksum_error(), "");
        EXPECT_EQ(view.src() + " " + view.dst(), "192.0.2.1 198.51.100.7");
        EXPECT_EQ(view.icmp_code(), code);
        EXPECT_EQ(view.icmp_rest(), 1400u);
        EXPECT_EQ(view.ttl(), 32);
        const Bytes inner = view.inner_frame();
        EXPECT_EQ(PacketView(inner).checksum_error(), "");  // with all quoted: L4 as well
        EXPECT_EQ(PacketView(inner).dst(), "203.0.113.10");
        EXPECT_EQ(PacketView(inner).dport(), 80);
        EXPECT_EQ(PacketView(inner).sport(), 40000);
      }
    }
  }
}

// F7: towards the backend, source translation undone in outer and quoted header.
TEST(IcmpTranslate, TurnsErrorsTowardsTheBackend) {
  const Bytes cause = v4("203.0.113.10", "198.51.100.7").tcp(80, 40000).payload(60).build();
  Bytes frame = v4("192.0.2.1", "203.0.113.10").icmp(11, 0).quote(cause).build();
  translate_error4(frame, "192.0.2.1", "10.1.0.1", key4("10.1.0.1", 8080, "10.0.0.9", 1024, 6));
  const PacketView view(frame);
  EXPECT_EQ(view.checksum_error(), "");
  EXPECT_EQ(view.flow(), "icmp 192.0.2.1 > 10.1.0.1");
  const Bytes inner = view.inner_frame();
  EXPECT_EQ(PacketView(inner).flow(), "tcp 10.1.0.1:8080 > 10.0.0.9:1024");
  EXPECT_EQ(PacketView(inner).checksum_error(), "");
}

// F7: packet too big.
TEST(IcmpTranslate, PutsTheQuoteIntoTheReceiversView6) {
  for (const int protocol : {6, 17, 132}) {
    for (const std::size_t limit : {48, 60, 65535}) {
      Bytes frame = v6("2001:db8::99", "fd00::aa")
                        .icmp(2, 0, 1400)
                        .quote(quoted6(protocol).build(), limit)
                        .build();
      const auto proto = static_cast<std::uint8_t>(protocol);
      translate_error6(frame, "fd00::aa", "2001:db8::7",
                       key6("2001:db8::7", 39999, "2001:db8::10", 80, proto));
      const PacketView view(frame);
      EXPECT_EQ(view.checksum_error(), "");
      EXPECT_EQ(view.flow(), "icmp6 fd00::aa > 2001:db8::7");
      EXPECT_EQ(view.icmp_rest(), 1400u);
      EXPECT_EQ(view.ttl(), 32);
      const Bytes inner = view.inner_frame();
      EXPECT_EQ(PacketView(inner).checksum_error(), "");
      EXPECT_EQ(PacketView(inner).dst() + " " + PacketView(inner).src(),
                "2001:db8::10 2001:db8::7");
      EXPECT_EQ(PacketView(inner).dport(), 80);
      EXPECT_EQ(PacketView(inner).sport(), 39999);
    }
  }
}

TEST(IcmpTranslate, WorksBehindQuotedOptionsAndExtensionHeaders) {
  const Bytes cause = v4("198.51.100.7", "10.1.0.1")
                          .ipv4_options({7, 7, 4, 0, 0, 0, 0})
                          .udp(40000, 8080)
                          .payload(31)
                          .build();
  Bytes frame = v4("192.0.2.1", "198.51.100.7").icmp(3, 3).quote(cause).build();
  translate_error4(frame, "192.0.2.1", "198.51.100.7",
                   key4("198.51.100.7", 4, "203.0.113.10", 80, 17));
  EXPECT_EQ(PacketView(frame).checksum_error(), "");
  EXPECT_EQ(PacketView(PacketView(frame).inner_frame()).checksum_error(), "");
  const Bytes cause6 = v6().hop_by_hop().udp(40000, 8080).payload(31).build();
  Bytes frame6 = v6("2001:db8::99", "fd00::1").icmp(1, 4).quote(cause6).build();
  translate_error6(frame6, "2001:db8::99", "fd00::1", key6("fd00::1", 4, "fd00::10", 80, 17));
  EXPECT_EQ(PacketView(frame6).checksum_error(), "");
  const Bytes inner = PacketView(frame6).inner_frame();
  EXPECT_EQ(PacketView(inner).flow(), "udp [fd00::1]:4 > [fd00::10]:80");
  EXPECT_EQ(PacketView(inner).checksum_error(), "");
}

TEST(IcmpTranslate, AWrongErrorChecksumStaysWrong) {
  Bytes frame = v4("192.0.2.1", "198.51.100.7")
                    .icmp(3, 4)
                    .wrong_l4_checksum()
                    .quote(quoted4(6).build())
                    .build();
  translate_error4(frame, "192.0.2.1", "198.51.100.7",
                   key4("198.51.100.7", 1, "203.0.113.10", 80, 6));
  EXPECT_EQ(PacketView(frame).checksum_error(), "L4 checksum");
}

bool may_answer(const Bytes& frame) {
  return may_answer_with_error(frame.data(), parse(frame));
}

// RFC 1122 3.2.2, RFC 4443 2.4(e).
TEST(IcmpBuild, IsForbiddenAboutErrorsFragmentsAndGroups) {
  EXPECT_TRUE(may_answer(v4().udp(1, 2).build()));
  EXPECT_TRUE(may_answer(v6().udp(1, 2).build()));
  EXPECT_TRUE(may_answer(v4().echo_request(1, 2).build()));
  EXPECT_TRUE(may_answer(v4().protocol(47).payload(8).build()));
  EXPECT_TRUE(may_answer(v4().fragment(0, true).udp(1, 2).payload(8).build()));
  EXPECT_FALSE(may_answer(v4().icmp(3, 3).quote(quoted4(6).build()).build()));
  EXPECT_FALSE(may_answer(v4().icmp(5, 0).payload(28).build()));
  EXPECT_FALSE(may_answer(v6().icmp(1, 4).quote(quoted6(6).build()).build()));
  EXPECT_FALSE(may_answer(v6().icmp(100, 0).payload(8).build()));
  EXPECT_FALSE(may_answer(v4().fragment(8, true).protocol(17).payload(8).build()));
  EXPECT_FALSE(may_answer(v6().fragment6(8, true).protocol(17).payload(8).build()));
  EXPECT_FALSE(may_answer(v4("10.0.0.1", "224.0.0.1").udp(1, 2).build()));
  EXPECT_FALSE(may_answer(v4("10.0.0.1", "255.255.255.255").udp(1, 2).build()));
  EXPECT_FALSE(may_answer(v4("240.0.0.1", "10.0.0.1").udp(1, 2).build()));
  EXPECT_FALSE(may_answer(v6("fd00::1", "ff02::1").udp(1, 2).build()));
  EXPECT_FALSE(may_answer(PacketBuilder()
                              .eth(test::kPeerMac, test::kBroadcastMac)
                              .ipv4("10.0.0.1", "10.0.0.2")
                              .udp(1, 2)
                              .build()));
  EXPECT_FALSE(may_answer(PacketBuilder().eth().arp_request("10.0.0.1", "10.0.0.2").build()));
}

// Found by the fuzz smoke test: the type was read where a frame without payload had ended.
TEST(IcmpBuild, ReadsNothingBehindAFrameThatEndsWithItsIpHeader) {
  Bytes frame = v4().protocol(50).build();
  frame.shrink_to_fit();
  EXPECT_FALSE(is_icmp_error(frame.data(), parse(frame)));
}

Bytes build_error(const Bytes& cause, IcmpErrorKind kind, const char* source,
                  std::uint32_t mtu = 0) {
  Bytes out(kMaxIcmpErrorFrame, 0xee);
  out.resize(build_icmp_error(cause.data(), size_of(cause), parse(cause),
                              {kind, *parse_address(source), mtu}, out.data(), size_of(out)));
  return out;
}

TEST(IcmpBuild, MakesEveryKind) {
  struct Case {
    IcmpErrorKind kind;
    int type4, code4, type6, code6;
    std::uint32_t mtu;
  };
  for (const Case& c : {Case{IcmpErrorKind::kPortUnreachable, 3, 3, 1, 4, 0},
                        Case{IcmpErrorKind::kTooBig, 3, 4, 2, 0, 1400},
                        Case{IcmpErrorKind::kTimeExceeded, 11, 0, 3, 0, 0},
                        Case{IcmpErrorKind::kHostUnreachable, 3, 1, 1, 3, 0}}) {
    const Bytes cause = v4().udp(1000, 53).payload(10).pad_to(60).build();
    const Bytes error = build_error(cause, c.kind, "192.0.2.9", c.mtu);
    const PacketView view(error);
    EXPECT_EQ(view.flow(), "icmp 192.0.2.9 > 10.0.0.1");
    EXPECT_EQ(view.icmp_type(), c.type4);
    EXPECT_EQ(view.icmp_code(), c.code4);
    EXPECT_EQ(view.icmp_rest(), c.mtu);
    EXPECT_EQ(view.checksum_error(), "");
    EXPECT_FALSE(view.dont_fragment());
    EXPECT_EQ(view.eth_dst(), test::kPeerMac);
    EXPECT_EQ(view.eth_src(), test::kOwnMac);
    EXPECT_EQ(view.payload(), Bytes(cause.begin() + 14, cause.begin() + 14 + 38));
    const Bytes cause6 = v6().udp(1000, 53).payload(10).build();
    const Bytes error6 = build_error(cause6, c.kind, "fd00::9", c.mtu);
    const PacketView view6(error6);
    EXPECT_EQ(view6.flow(), "icmp6 fd00::9 > fd00::1");
    EXPECT_EQ(view6.icmp_type(), c.type6);
    EXPECT_EQ(view6.icmp_code(), c.code6);
    EXPECT_EQ(view6.icmp_rest(), c.mtu);
    EXPECT_EQ(view6.checksum_error(), "");
    EXPECT_EQ(view6.payload(), Bytes(cause6.begin() + 14, cause6.end()));
  }
}

TEST(IcmpBuild, QuotesUpToTheLimitOfTheFamily) {
  EXPECT_EQ(
      build_error(v4().udp(1, 2).payload(1400).build(), IcmpErrorKind::kTimeExceeded, "1.1.1.1")
          .size(),
      14u + 576);
  EXPECT_EQ(
      build_error(v6().udp(1, 2).payload(1400).build(), IcmpErrorKind::kTimeExceeded, "fd00::9")
          .size(),
      14u + 1280);
}

TEST(IcmpBuild, RefusesRoomThatDoesNotHoldTheLeastQuote) {
  const Bytes cause = v4().udp(1, 2).payload(100).build();
  Bytes out(100);
  const IcmpErrorRequest request{IcmpErrorKind::kPortUnreachable, *parse_address("1.1.1.1"), 0};
  EXPECT_EQ(build_icmp_error(cause.data(), size_of(cause), parse(cause), request, out.data(), 69),
            0u);
  EXPECT_EQ(build_icmp_error(cause.data(), size_of(cause), parse(cause), request, out.data(), 70),
            70u);
  EXPECT_EQ(PacketView(std::span(out).first(70)).checksum_error(), "");
}

TEST(IcmpBuild, MayWriteOverTheCause) {
  for (const bool is_v6 : {false, true}) {
    const Bytes cause = (is_v6 ? v6() : v4()).udp(1, 2).payload(200).build();
    const char* source = is_v6 ? "fd00::9" : "1.1.1.1";
    const Bytes wanted = build_error(cause, IcmpErrorKind::kTooBig, source, 1300);
    Bytes buffer = cause;
    buffer.resize(kMaxIcmpErrorFrame);
    const std::uint32_t length = build_icmp_error(
        buffer.data(), size_of(cause), parse(cause),
        {IcmpErrorKind::kTooBig, *parse_address(source), 1300}, buffer.data(), size_of(buffer));
    buffer.resize(length);
    EXPECT_EQ(buffer, wanted);
  }
}

// F37: an announced address can be pinged.
TEST(Echo, IsAnsweredInPlace) {
  Bytes frame = v4("10.0.0.1", "203.0.113.10").echo_request(5, 9).payload(33).build();
  ASSERT_TRUE(make_echo_reply(frame.data(), parse(frame)));
  EXPECT_EQ(frame, PacketBuilder()
                       .eth(test::kOwnMac, test::kPeerMac)
                       .ipv4("203.0.113.10", "10.0.0.1", 64)
                       .icmp(0, 0, 5 << 16 | 9)
                       .payload(33)
                       .build());
  Bytes frame6 = v6("fd00::1", "fd00::10").echo_request(5, 9).payload(33).build();
  ASSERT_TRUE(make_echo_reply(frame6.data(), parse(frame6)));
  EXPECT_EQ(frame6, PacketBuilder()
                        .eth(test::kOwnMac, test::kPeerMac)
                        .ipv6("fd00::10", "fd00::1", 64)
                        .icmp(129, 0, 5 << 16 | 9)
                        .payload(33)
                        .build());
}

TEST(Echo, IsAnsweredToRequestsForOneHostOnly) {
  for (Bytes frame :
       {v4().icmp(0, 0, 1).build(), v4().icmp(3, 1).build(),
        v4("10.0.0.1", "224.0.0.1").echo_request(1, 1).build(),
        v6("fd00::1", "ff02::1").echo_request(1, 1).build(), v4().udp(8, 8).build()}) {
    const Bytes before = frame;
    EXPECT_FALSE(make_echo_reply(frame.data(), parse(frame)));
    EXPECT_EQ(frame, before);
  }
}

}  // namespace
}  // namespace sluice::core
