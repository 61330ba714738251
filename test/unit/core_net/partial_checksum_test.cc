#include "dataplane/core/net/partial_checksum.h"

#include "dataplane/core/net/checksum.h"
#include "dataplane/core/net/crc32c.h"
#include "test/unit/core_net/net_test.h"

namespace sluice::core {
namespace {

using test::Bytes;
using test::PacketBuilder;
using test::PacketView;

/// As workers do on receipt. @return true: it had to be completed.
bool complete_if_partial(std::uint8_t* data, const ParsedFrame& frame) {
  const bool partial = checksum_is_partial(data, frame);
  if (partial) {
    complete_checksum(data, frame);
  }
  return partial;
}

PacketBuilder with_l4(bool is_v6, int protocol) {
  PacketBuilder builder = is_v6 ? v6() : v4();
  protocol == 6    ? builder.tcp(1000, 80)
  : protocol == 17 ? builder.udp(1000, 80)
                   : builder.sctp(1000, 80);
  return builder;
}

TEST(PartialChecksum, CompletesWhatTheSenderLeftUnfinished) {
  // 65000: a whole send that the kernel meant for segmentation by the card.
  for (const std::size_t size : {0, 1, 2, 1399, 1400, 65000}) {
    for (const int protocol : {6, 17, 132}) {
      for (const bool is_v6 : {false, true}) {
        Bytes frame = with_l4(is_v6, protocol).payload(size).partial_checksum().build();
        const Bytes wanted = with_l4(is_v6, protocol).payload(size).build();
        const ParsedFrame parsed = parse(frame);
        EXPECT_TRUE(checksum_is_partial(frame.data(), parsed));
        EXPECT_TRUE(complete_if_partial(frame.data(), parsed));
        EXPECT_EQ(frame, wanted) << protocol << ' ' << size;
      }
    }
  }
}

TEST(PartialChecksum, LeavesFinishedAndWrongChecksumsAlone) {
  for (const int protocol : {6, 17, 132}) {
    for (const bool wrong : {false, true}) {
      PacketBuilder builder = with_l4(false, protocol).payload(50);
      Bytes frame = wrong ? builder.wrong_l4_checksum().build() : builder.build();
      const Bytes before = frame;
      EXPECT_FALSE(complete_if_partial(frame.data(), parse(frame)));
      EXPECT_EQ(frame, before);
    }
  }
}

TEST(PartialChecksum, LeavesUdpWithoutChecksumAlone) {
  Bytes frame = v4().udp(1000, 53).payload(50).no_udp_checksum().build();
  EXPECT_FALSE(complete_if_partial(frame.data(), parse(frame)));
}

TEST(PartialChecksum, IgnoresEthernetPaddingAndExtensionHeaders) {
  Bytes frame = v4().tcp(1, 2).payload(1).partial_checksum().pad_to(60).build();
  frame.back() = 0x77;
  EXPECT_TRUE(complete_if_partial(frame.data(), parse(frame)));
  EXPECT_EQ(PacketView(frame).checksum_error(), "");
  Bytes frame6 = v6().hop_by_hop().udp(1, 2).payload(1).partial_checksum().build();
  EXPECT_TRUE(complete_if_partial(frame6.data(), parse(frame6)));
  EXPECT_EQ(PacketView(frame6).checksum_error(), "");
}

TEST(PartialChecksum, WritesUdpZeroAsOnes) {
  // Chosen so that the sum over everything is 0xffff and the computed checksum 0.
  Bytes frame = v4().udp(1000, 53).payload(2).partial_checksum().build();
  frame[42] = frame[43] = 0;
  const ParsedFrame parsed = parse(frame);
  const std::uint16_t rest = fold(sum_bytes(frame.data() + 34, 10));
  const auto missing = static_cast<std::uint16_t>(~rest);
  std::memcpy(frame.data() + 42, &missing, 2);
  ASSERT_TRUE(complete_if_partial(frame.data(), parsed));
  EXPECT_EQ(frame[40] << 8 | frame[41], 0xffff);
  EXPECT_EQ(PacketView(frame).checksum_error(), "");
}

TEST(PartialChecksum, CompletesFramesInSegments) {
  for (const int protocol : {6, 17, 132}) {
    Bytes frame = with_l4(false, protocol).payload(1001).partial_checksum().build();
    const ParsedFrame parsed = parse(frame);
    SegmentedSum sum;
    std::uint32_t crc = ~0u;
    for (std::size_t at = parsed.l4_offset; at < frame.size();) {
      const std::size_t step = std::min<std::size_t>(333, frame.size() - at);
      sum.add(frame.data() + at, step);
      crc = crc32c_update(crc, frame.data() + at, step);
      at += step;
    }
    protocol == 132 ? complete_sctp_from_state(frame.data(), parsed, crc)
                    : complete_checksum_from_sum(frame.data(), parsed, sum.value());
    EXPECT_EQ(PacketView(frame).checksum_error(), "");
  }
}

TEST(PartialChecksum, IsNeverSeenOutsideFlows) {
  const Bytes frame = v4().fragment(0, true).udp(1, 2).payload(8).partial_checksum().build();
  EXPECT_FALSE(checksum_is_partial(frame.data(), parse(frame)));
}

}  // namespace
}  // namespace sluice::core
