#include "test/support/packet_builder.h"

#include <gtest/gtest.h>

#include "test/support/packet_view.h"

namespace sluice::test {
namespace {

// A frame as another implementation writes it: ICMP echo from a packet capture textbook example.
TEST(PacketBuilder, WritesTheBytesOfAKnownUdpPacket) {
  const Bytes frame = PacketBuilder()
                          .eth()
                          .ipv4("192.168.0.31", "192.168.0.30", 30)
                          .protocol(17)
                          .udp(20, 10)
                          .payload("Hi")
                          .build();
  EXPECT_EQ(PacketView(frame).flow(), "udp 192.168.0.31:20 > 192.168.0.30:10");
  // Known answer: pseudo-header of this textbook packet sums to 0x35c5 after complement.
  EXPECT_EQ(frame[40] << 8 | frame[41], 0x35c5);
}

TEST(PacketBuilder, MakesRightChecksumsForEveryProtocol) {
  for (std::size_t size : {0, 1, 2, 33, 1400}) {
    for (const bool v6 : {false, true}) {
      const auto base = [v6] {
        return v6 ? PacketBuilder().eth().ipv6("fd00::1", "fd00::2")
                  : PacketBuilder().eth().ipv4("10.0.0.1", "10.0.0.2");
      };
      for (const Bytes& frame :
           {base().tcp(1, 2).payload(size).build(), base().udp(1, 2).payload(size).build(),
            base().sctp(1, 2).payload(size).build(),
            base().echo_request(1, 2).payload(size).build()}) {
        EXPECT_EQ(PacketView(frame).checksum_error(), "") << PacketView(frame).flow();
        Bytes broken = frame;
        broken.back() ^= 0x10;
        EXPECT_NE(PacketView(broken).checksum_error(), "") << PacketView(frame).flow();
      }
    }
  }
}

TEST(PacketBuilder, FragmentsCarryEveryByteOnce) {
  for (const bool v6 : {false, true}) {
    auto builder = v6 ? PacketBuilder().eth().ipv6("fd00::1", "fd00::2")
                      : PacketBuilder().eth().ipv4("10.0.0.1", "10.0.0.2");
    const Bytes whole = builder.udp(1, 2).payload(3000).build();
    std::size_t bytes = 0;
    for (const Bytes& piece : fragment_frame(whole, 1400, 9)) {
      const PacketView view(piece);
      EXPECT_EQ(view.fragment_offset(), bytes);
      bytes += view.ip_length() - (v6 ? 48 : 20);
      EXPECT_EQ(view.more_fragments(), bytes < 3008);
      EXPECT_EQ(view.checksum_error(), "");
    }
    EXPECT_EQ(bytes, 3008u);
  }
}

TEST(PacketView, ReadsQuotedPackets) {
  const Bytes cause =
      PacketBuilder().eth().ipv4("10.0.0.1", "10.0.0.2").tcp(7, 80).payload(100).build();
  const Bytes error =
      PacketBuilder().eth().ipv4("10.0.0.9", "10.0.0.1").icmp(3, 4, 1400).quote(cause, 28).build();
  const PacketView view(error);
  EXPECT_EQ(view.flow(), "icmp 10.0.0.9 > 10.0.0.1");
  EXPECT_EQ(view.icmp_rest(), 1400u);
  EXPECT_TRUE(view.checksum_ok());
  const Bytes inner = view.inner_frame();
  EXPECT_EQ(PacketView(inner).flow(), "tcp 10.0.0.1:7 > 10.0.0.2:80");
}

}  // namespace
}  // namespace sluice::test
