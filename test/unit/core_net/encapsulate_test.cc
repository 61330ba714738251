#include "dataplane/core/net/encapsulate.h"

#include "test/unit/core_net/net_test.h"

namespace sluice::core {
namespace {

using test::Bytes;
using test::PacketView;

/// `frame` with room for an outer header in front, as prepend() leaves it.
template <class Outer>
Bytes with_room(const Bytes& frame) {
  Bytes out(frame.size() + tunnel_overhead(Outer::kFamily));
  std::copy(frame.begin() + 14, frame.end(),
            out.end() - static_cast<std::ptrdiff_t>(frame.size() - 14));
  return out;
}

template <class Inner, class Outer>
Bytes tunnelled(const Bytes& frame, const OuterHeader<Outer>& outer) {
  Bytes out = with_room<Outer>(frame);
  write_tunnel_headers<Inner, Outer>(out.data(), parse(frame).ip_length, outer);
  return out;
}

TEST(Encapsulate, WritesAnIpv4HeaderWithARightSum) {
  // Sums that carry: all ones in the addresses.
  for (const char* dst : {"10.0.0.9", "255.255.255.254", "128.0.0.1"}) {
    const Bytes inner = v4().tcp(1000, 80).payload(700).build();
    const Bytes out =
        tunnelled<Ipv4, Ipv4>(inner, {ip4("223.255.255.254"), ip4(dst), 0, true, 0});
    const PacketView view(out);
    EXPECT_EQ(view.checksum_error(), "");
    EXPECT_EQ(view.src(), "223.255.255.254");
    EXPECT_EQ(view.dst(), dst);
    EXPECT_EQ(view.protocol(), 4);
    EXPECT_EQ(view.ip_length(), 20u + 740);
    EXPECT_TRUE(view.dont_fragment());
    EXPECT_EQ(view.ip_id(), 0);
    EXPECT_EQ(PacketView(view.inner_frame()).ttl(), 32);
    EXPECT_EQ(PacketView(view.inner_frame()).checksum_error(), "");
  }
}

TEST(Encapsulate, WithoutDontFragmentThereIsAnIdentification) {
  const Bytes out = tunnelled<Ipv6, Ipv4>(v6().udp(1, 2).payload(9).build(),
                                          {ip4("10.0.0.8"), ip4("10.0.0.9"), 0, false, 0xfffe});
  const PacketView view(out);
  EXPECT_EQ(view.checksum_error(), "");
  EXPECT_EQ(view.protocol(), 41);
  EXPECT_EQ(view.ip_id(), 0xfffe);
  EXPECT_FALSE(view.dont_fragment());
  EXPECT_EQ(PacketView(view.inner_frame()).flow(), "udp [fd00::1]:1 > [fd00::2]:2");
}

TEST(Encapsulate, WritesAnIpv6HeaderWithTheFlowLabel) {
  const Bytes out = tunnelled<Ipv4, Ipv6>(v4().udp(1, 2).payload(9).build(),
                                          {ip6("fd00::8"), ip6("fd00::9"), 0xfff12345, true, 0});
  const PacketView view(out);
  EXPECT_EQ(view.src(), "fd00::8");
  EXPECT_EQ(view.protocol(), 4);
  EXPECT_EQ(view.ttl(), 64);
  EXPECT_EQ(view.ip_length(), 40u + 37);
  EXPECT_EQ(out[14], 0x60);
  EXPECT_EQ(out[15] & 0x0f, 0x01);
  EXPECT_EQ(out[16], 0x23);
  EXPECT_EQ(out[17], 0x45);
}

TEST(Encapsulate, TheMtuInsideIsThePathsLessTheHeaderAndNeverBelowIpv6sOwn) {
  EXPECT_EQ(tunnel_mtu(1500, Family::kIpv4, Family::kIpv4), 1480);
  EXPECT_EQ(tunnel_mtu(1500, Family::kIpv4, Family::kIpv6), 1460);
  EXPECT_EQ(tunnel_mtu(1500, Family::kIpv6, Family::kIpv6), 1460);
  EXPECT_EQ(tunnel_mtu(1290, Family::kIpv6, Family::kIpv4), 1280);
  EXPECT_EQ(tunnel_mtu(552, Family::kIpv4, Family::kIpv4), 532);
}

TunnelError error_about(const Bytes& frame) {
  TunnelError error;
  EXPECT_TRUE(parse_tunnel_error(frame.data(), size_of(frame), parse(frame), error));
  return error;
}

TEST(TunnelError, TellsWhoseTunnelAndWhoseFlow) {
  const Bytes outer = tunnelled<Ipv6, Ipv4>(v6().tcp(1000, 80).payload(900).build(),
                                            {ip4("192.0.2.8"), ip4("10.0.0.9"), 0, true, 0});
  const TunnelError error =
      error_about(v4("10.9.9.9", "192.0.2.8").icmp(3, 4, 1300).quote(outer, 200).build());
  EXPECT_EQ(error.kind, IcmpErrorKind::kTooBig);
  EXPECT_EQ(error.mtu, 1300);
  EXPECT_EQ(error.outer_src, *parse_address("192.0.2.8"));
  EXPECT_EQ(error.outer_dst, *parse_address("10.0.0.9"));
  ASSERT_TRUE(error.has_flow);
  EXPECT_EQ(error.inner.key6, key6("fd00::1", 1000, "fd00::2", 80, 6));
}

TEST(TunnelError, EightQuotedBytesTellNoFlow) {
  const Bytes outer = tunnelled<Ipv4, Ipv4>(v4().tcp(1000, 80).payload(900).build(),
                                            {ip4("192.0.2.8"), ip4("10.0.0.9"), 0, true, 0});
  const TunnelError error =
      error_about(v4("10.9.9.9", "192.0.2.8").icmp(3, 4, 1300).quote(outer, 28).build());
  EXPECT_FALSE(error.has_flow);
  EXPECT_EQ(error.outer_dst, *parse_address("10.0.0.9"));
}

TEST(TunnelError, EverythingButTooBigIsAnUnreachableHost) {
  const Bytes outer = tunnelled<Ipv4, Ipv6>(v4().tcp(1000, 80).payload(90).build(),
                                            {ip6("fd00::8"), ip6("fd00::9"), 0, true, 0});
  for (const int type : {1, 3}) {
    const TunnelError error = error_about(v6("fd00::99", "fd00::8")
                                              .icmp(static_cast<std::uint8_t>(type), 0)
                                              .quote(outer)
                                              .build());
    EXPECT_EQ(error.kind, IcmpErrorKind::kHostUnreachable);
    EXPECT_TRUE(error.has_flow);
  }
}

TEST(TunnelError, OtherErrorsAreNone) {
  const Bytes plain = v4().tcp(1000, 80).payload(90).build();
  const Bytes outer = tunnelled<Ipv4, Ipv4>(plain, {ip4("192.0.2.8"), ip4("10.0.0.9"), 0, true, 0});
  TunnelError error;
  for (const Bytes& frame :
       {v4().icmp(3, 4, 1300).quote(plain).build(), v4().icmp(12, 0).quote(outer).build(),
        v4().icmp(3, 4, 1300).quote(outer, 19).build(), v4().echo_request(1, 1).build(), plain}) {
    EXPECT_FALSE(parse_tunnel_error(frame.data(), size_of(frame), parse(frame), error));
  }
}

}  // namespace
}  // namespace sluice::core
