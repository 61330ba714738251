#include "dataplane/core/net/rewrite.h"

#include <random>

#include "test/unit/core_net/net_test.h"

namespace sluice::core {
namespace {

using test::Bytes;
using test::PacketBuilder;
using test::PacketView;

/// Makes the frame's tuple `to`.
template <class F>
void translate_to(Bytes& frame, const typename F::Key& to) {
  const ParsedFrame parsed = parse(frame);
  translate(frame.data(), parsed, Translation<F>::between(key_of<F>(parsed), to));
}

TEST(Rewrite, TranslatesIpv4AndTakesAHop) {
  Bytes frame = v4("10.0.0.1", "192.0.2.1").tcp(1000, 80).payload(5).build();
  translate_to<Ipv4>(frame, key4("10.0.0.1", 1000, "172.16.0.9", 8080, 6));
  const PacketView view(frame);
  EXPECT_EQ(view.flow(), "tcp 10.0.0.1:1000 > 172.16.0.9:8080");
  EXPECT_EQ(view.ttl(), 32);
  EXPECT_EQ(view.checksum_error(), "");
}

TEST(Rewrite, TranslatesIpv6BehindExtensionHeaders) {
  Bytes frame = v6().hop_by_hop().destination_options().udp(1000, 53).payload(5).build();
  translate_to<Ipv6>(frame, key6("fd00::5", 7, "fd00::6", 8, 17));
  const PacketView view(frame);
  EXPECT_EQ(view.flow(), "udp [fd00::5]:7 > [fd00::6]:8");
  EXPECT_EQ(view.ttl(), 32);
  EXPECT_EQ(view.checksum_error(), "");
}

TEST(Rewrite, LeavesUdpWithoutChecksumWithoutOne) {
  Bytes frame = v4().udp(1000, 53).payload(5).no_udp_checksum().build();
  translate_to<Ipv4>(frame, key4("1.2.3.4", 5, "6.7.8.9", 10, 17));
  EXPECT_EQ(frame[40] << 8 | frame[41], 0);
  EXPECT_TRUE(PacketView(frame).checksum_ok());
}

TEST(Rewrite, AWrongChecksumStaysWrong) {
  for (const bool sctp : {false, true}) {
    PacketBuilder builder = v4();
    (sctp ? builder.sctp(1000, 80) : builder.tcp(1000, 80)).payload(5).wrong_l4_checksum();
    Bytes frame = builder.build();
    const std::uint8_t proto = sctp ? 132 : 6;
    translate_to<Ipv4>(frame, key4("1.2.3.4", 5, "6.7.8.9", 10, proto));
    EXPECT_NE(PacketView(frame).checksum_error(), "");
  }
}

TEST(Rewrite, FragmentsReassembleToARightPacket) {
  for (const std::uint8_t proto : {std::uint8_t{6}, std::uint8_t{17}}) {
    PacketBuilder builder = v4();
    const Bytes whole =
        (proto == 6 ? builder.tcp(1000, 80) : builder.udp(1000, 80)).payload(3001).build();
    const FlowKey4 to = key4("1.2.3.4", 5, "6.7.8.9", 10, proto);
    const auto translation = Translation<Ipv4>::between(parse(whole).key4, to);
    Bytes joined;
    for (Bytes& piece : test::fragment_frame(whole, 1300, 9)) {
      ASSERT_TRUE(translate_fragment(piece.data(), parse(piece), translation));
      const PacketView view(piece);
      EXPECT_EQ(view.checksum_error(), "");
      EXPECT_EQ(view.src() + view.dst(), "1.2.3.46.7.8.9");
      joined.insert(joined.end(), piece.begin() + (joined.empty() ? 0 : 34), piece.end());
    }
    joined[16] = static_cast<std::uint8_t>((joined.size() - 14) >> 8);
    joined[17] = static_cast<std::uint8_t>(joined.size() - 14);
    joined[20] = joined[21] = 0;
    joined[24] = joined[25] = 0;
    const std::uint16_t sum = ipv4_header_checksum(joined.data() + 14, 20);
    std::memcpy(joined.data() + 24, &sum, 2);
    EXPECT_EQ(PacketView(joined).checksum_error(), "");
    EXPECT_EQ(PacketView(joined).sport(), 5);
  }
}

TEST(Rewrite, RefusesAFirstSctpFragmentWhosePortsWouldChange) {
  Bytes frame = v4().fragment(0, true).sctp(1000, 80).payload(8).build();
  const Bytes before = frame;
  const ParsedFrame parsed = parse(frame);
  EXPECT_FALSE(translate_fragment(
      frame.data(), parsed,
      Translation<Ipv4>::between(parsed.key4, key4("1.2.3.4", 5, "6.7.8.9", 80, 132))));
  EXPECT_EQ(frame, before);
  EXPECT_TRUE(translate_fragment(
      frame.data(), parsed,
      Translation<Ipv4>::between(parsed.key4, key4("1.2.3.4", 1000, "6.7.8.9", 80, 132))));
  EXPECT_EQ(PacketView(frame).src(), "1.2.3.4");
}

TEST(Rewrite, TtlAloneKeepsTheChecksumRight) {
  for (int ttl = 2; ttl < 256; ++ttl) {
    Bytes frame = PacketBuilder()
                      .eth()
                      .ipv4("10.0.0.1", "10.0.0.2", static_cast<std::uint8_t>(ttl))
                      .udp(1, 2)
                      .build();
    decrement_ttl4(frame.data() + 14);
    EXPECT_EQ(PacketView(frame).ttl(), ttl - 1);
    EXPECT_EQ(PacketView(frame).checksum_error(), "");
  }
}

/// Random frames of one family against a frame built anew.
class RewriteRandom {
 public:
  explicit RewriteRandom(unsigned seed) : random_(seed) {}

  std::string address(bool is_v6) {
    // Few distinct bytes: equal words, zeros and ones occur often.
    const auto byte = [this] {
      const unsigned pick = next() % 4;
      return pick == 0 ? 0u : pick == 1 ? 0xffu : next() & 0xff;
    };
    if (!is_v6) {
      return "10." + std::to_string(byte()) + '.' + std::to_string(byte()) + '.' +
             std::to_string(byte());
    }
    Ipv6Address a = ip6("2001:db8::");
    for (std::size_t i = 4; i < 16; ++i) {
      a.bytes[i] = static_cast<std::uint8_t>(byte());
    }
    return to_string(a);
  }
  std::uint16_t port() { return static_cast<std::uint16_t>(next() % 3 == 0 ? 0xffff : next()); }
  unsigned next() { return static_cast<unsigned>(random_()); }

 private:
  std::mt19937 random_;
};

struct Side {
  std::string src;
  std::string dst;
  std::uint16_t sport;
  std::uint16_t dport;
};

Bytes build_frame(bool is_v6, unsigned protocol, const Side& side, std::size_t payload,
                  std::uint8_t ttl) {
  PacketBuilder builder = PacketBuilder().eth();
  is_v6 ? builder.ipv6(side.src, side.dst, ttl) : builder.ipv4(side.src, side.dst, ttl);
  protocol == 6    ? builder.tcp(side.sport, side.dport)
  : protocol == 17 ? builder.udp(side.sport, side.dport)
                   : builder.sctp(side.sport, side.dport);
  return builder.payload(payload).build();
}

// 100,000 cases: the delta gives the very bytes of a frame built from scratch, and its negation
// brings the old frame back (but for the two hops).
TEST(Rewrite, DeltaEqualsComputationFromScratch) {
  RewriteRandom random(20240601);
  const unsigned protocols[] = {6, 17, 132};
  for (int round = 0; round < 100000; ++round) {
    const bool is_v6 = random.next() % 2 == 0;
    const unsigned protocol = protocols[random.next() % 3];
    const Side before{random.address(is_v6), random.address(is_v6), random.port(), random.port()};
    const Side after{random.next() % 4 == 0 ? before.src : random.address(is_v6),
                     random.address(is_v6), random.next() % 4 == 0 ? before.sport : random.port(),
                     random.port()};
    const std::size_t payload = random.next() % 40;
    const auto ttl = static_cast<std::uint8_t>(3 + random.next() % 250);
    Bytes frame = build_frame(is_v6, protocol, before, payload, ttl);
    const Bytes wanted =
        build_frame(is_v6, protocol, after, payload, static_cast<std::uint8_t>(ttl - 1));
    const Bytes back =
        build_frame(is_v6, protocol, before, payload, static_cast<std::uint8_t>(ttl - 2));
    ParsedFrame parsed;
    parse_frame(frame.data(), size_of(frame), size_of(frame), parsed);
    if (parsed.kind == FrameKind::kBad) {
      continue;  // a land packet
    }
    const auto check = [&]<class F>(F, const typename F::Key& to) {
      const auto forward = Translation<F>::between(key_of<F>(parsed), to);
      translate(frame.data(), parsed, forward);
      ASSERT_EQ(frame, wanted);
      const typename F::Key& from = key_of<F>(parsed);
      translate(frame.data(), parsed,
                Translation<F>{from.src, from.dst, from.sport, from.dport, forward.l3.negated(),
                               forward.l4.negated()});
      ASSERT_EQ(frame, back);
    };
    const auto proto = static_cast<std::uint8_t>(protocol);
    is_v6 ? check(Ipv6{}, key6(after.src, after.sport, after.dst, after.dport, proto))
          : check(Ipv4{}, key4(after.src, after.sport, after.dst, after.dport, proto));
  }
}

}  // namespace
}  // namespace sluice::core
