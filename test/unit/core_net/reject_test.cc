#include "dataplane/core/net/reject.h"

#include "test/unit/core_net/net_test.h"

namespace sluice::core {
namespace {

using test::Bytes;
using test::PacketBuilder;
using test::PacketView;

Bytes reject(const Bytes& cause) {
  Bytes out(kMaxIcmpErrorFrame, 0xee);
  out.resize(build_reject(cause.data(), size_of(cause), parse(cause), out.data(), size_of(out)));
  return out;
}

// RFC 9293 3.10.7.1.
TEST(Reject, ResetsASynByAcknowledgingIt) {
  for (const bool is_v6 : {false, true}) {
    const Bytes out = reject((is_v6 ? v6() : v4())
                                 .tcp(1000, 80, test::kSyn, 5000, 77)
                                 .tcp_options({2, 4, 5, 180})
                                 .build());
    const PacketView view(out);
    EXPECT_EQ(view.flow(),
              is_v6 ? "tcp [fd00::2]:80 > [fd00::1]:1000" : "tcp 10.0.0.2:80 > 10.0.0.1:1000");
    EXPECT_EQ(view.tcp_flags(), test::kRst | test::kAck);
    EXPECT_EQ(view.seq(), 0u);
    EXPECT_EQ(view.ack(), 5001u);
    EXPECT_EQ(view.ttl(), 64);
    EXPECT_EQ(view.eth_dst(), test::kPeerMac);
    EXPECT_EQ(view.eth_src(), test::kOwnMac);
    EXPECT_EQ(view.checksum_error(), "");
    EXPECT_EQ(view.size(), is_v6 ? 74u : 54u);
  }
}

TEST(Reject, ResetsASegmentWithAckByItsAcknowledgement) {
  const Bytes out =
      reject(v4().tcp(1000, 80, test::kAck | test::kPsh, 5000, 777).payload(10).build());
  const PacketView reset(out);
  EXPECT_EQ(reset.tcp_flags(), test::kRst);
  EXPECT_EQ(reset.seq(), 777u);
  EXPECT_EQ(reset.ack(), 0u);
  EXPECT_EQ(reset.checksum_error(), "");
}

TEST(Reject, CountsPayloadSynAndFin) {
  const Bytes out = reject(
      v4().tcp(1000, 80, test::kSyn | test::kFin, 0xfffffffe, 0).payload(10).pad_to(90).build());
  EXPECT_EQ(PacketView(out).ack(), 10u);
}

TEST(Reject, NeverAnswersAReset) {
  EXPECT_TRUE(reject(v4().tcp(1000, 80, test::kRst).build()).empty());
  EXPECT_TRUE(reject(v6().tcp(1000, 80, test::kRst | test::kAck).build()).empty());
}

TEST(Reject, AnswersUdpWithPortUnreachableInTheNameOfTheAskedAddress) {
  const Bytes cause = v4().udp(1000, 53).payload(20).build();
  const Bytes out = reject(cause);
  EXPECT_EQ(PacketView(out).flow(), "icmp 10.0.0.2 > 10.0.0.1");
  EXPECT_EQ(PacketView(out).icmp_type(), 3);
  EXPECT_EQ(PacketView(out).icmp_code(), 3);
  EXPECT_EQ(PacketView(out).checksum_error(), "");
  const Bytes out6 = reject(v6().udp(1000, 53).payload(20).build());
  EXPECT_EQ(PacketView(out6).flow(), "icmp6 fd00::2 > fd00::1");
  EXPECT_EQ(PacketView(out6).icmp_type(), 1);
  EXPECT_EQ(PacketView(out6).icmp_code(), 4);
  EXPECT_EQ(PacketView(out6).checksum_error(), "");
}

TEST(Reject, AbortsSctpWithTheTagOfTheInit) {
  const Bytes init = {1, 0, 0, 20, 0xa1, 0xa2, 0xa3, 0xa4, 0, 0, 0x10, 0, 0, 1, 0, 1, 0, 0, 0, 9};
  const Bytes out = reject(v4().sctp(1000, 80, 0).raw(init).build());
  const PacketView view(out);
  EXPECT_EQ(view.flow(), "sctp 10.0.0.2:80 > 10.0.0.1:1000");
  EXPECT_EQ(view.payload(), (Bytes{6, 0, 0, 4}));
  EXPECT_EQ(Bytes(out.begin() + 38, out.begin() + 42), (Bytes{0xa1, 0xa2, 0xa3, 0xa4}));
  EXPECT_EQ(view.checksum_error(), "");
}

// RFC 9260 8.4, 8.5.1.
TEST(Reject, AbortsOtherSctpWithTheReflectedTag) {
  const Bytes out = reject(v6().sctp(1000, 80, 0x01020304).raw({0, 3, 0, 20, 0, 0, 0, 1}).build());
  EXPECT_EQ(PacketView(out).payload(), (Bytes{6, 1, 0, 4}));
  EXPECT_EQ(Bytes(out.begin() + 58, out.begin() + 62), (Bytes{1, 2, 3, 4}));
  EXPECT_EQ(PacketView(out).checksum_error(), "");
}

TEST(Reject, NeverAbortsAnAbort) {
  for (const int type : {6, 9, 11, 14}) {
    EXPECT_TRUE(
        reject(v4().sctp(1, 2).raw({static_cast<std::uint8_t>(type), 0, 0, 4}).build()).empty());
  }
  EXPECT_TRUE(reject(v4().sctp(1, 2).build()).empty());
}

TEST(Reject, IsSilentTowardsGroupsAndErrors) {
  EXPECT_TRUE(reject(v4("10.0.0.1", "224.0.0.1").tcp(1, 2).build()).empty());
  EXPECT_TRUE(reject(v4("10.0.0.1", "255.255.255.255").udp(1, 2).build()).empty());
  EXPECT_TRUE(reject(v4().icmp(3, 3).payload(28).build()).empty());
  EXPECT_TRUE(reject(v4().fragment(16, false).protocol(17).payload(28).build()).empty());
}

TEST(Reject, MayWriteOverTheCause) {
  for (const Bytes& cause :
       {v4().tcp(1000, 80, test::kSyn).build(), v6().udp(1000, 80).payload(30).build(),
        v6().sctp(1000, 80).raw({0, 3, 0, 4}).build()}) {
    Bytes buffer = cause;
    buffer.resize(kMaxIcmpErrorFrame);
    buffer.resize(
        build_reject(buffer.data(), size_of(cause), parse(cause), buffer.data(), size_of(buffer)));
    EXPECT_EQ(buffer, reject(cause));
  }
}

TEST(Reject, RefusesRoomThatIsTooSmall) {
  const Bytes cause = v4().tcp(1, 2, test::kSyn).build();
  Bytes out(54);
  EXPECT_EQ(build_tcp_reset(cause.data(), parse(cause), out.data(), 53), 0u);
  EXPECT_EQ(build_tcp_reset(cause.data(), parse(cause), out.data(), 54), 54u);
}

}  // namespace
}  // namespace sluice::core
