// The traffic generator's parts that its figures rest on.

#include <set>

#include <gtest/gtest.h>

#include "bench/generator/frame.h"
#include "bench/generator/histogram.h"
#include "bench/generator/responder.h"

namespace sluice::bench {
namespace {

TEST(Histogram, GivesPercentilesWithinTwoPerCent) {
  Histogram histogram;
  for (std::uint64_t v = 1; v <= 100'000; ++v) {
    histogram.add(v);
  }

  EXPECT_EQ(histogram.total(), 100'000u);
  EXPECT_NEAR(static_cast<double>(histogram.percentile(0.5)), 50'000, 1'000);
  EXPECT_NEAR(static_cast<double>(histogram.percentile(0.99)), 99'000, 2'000);
  EXPECT_EQ(histogram.percentile(1), 100'000u);
}

TEST(Histogram, KeepsSmallAndHugeValues) {
  Histogram histogram;
  histogram.add(3);
  histogram.add(UINT64_MAX);

  EXPECT_EQ(histogram.percentile(0.5), 3u);
  EXPECT_EQ(histogram.most(), UINT64_MAX);
  EXPECT_EQ(Histogram{}.percentile(0.99), 0u);
}

TEST(Shuffle, VisitsEveryFlowOnce) {
  for (const std::uint32_t size : {1u, 2u, 1'000u, 64'000u}) {
    const Shuffle order(size);
    std::set<std::uint32_t> seen;
    for (std::uint32_t i = 0; i < size; ++i) {
      seen.insert(order.at(i));
    }
    EXPECT_EQ(seen.size(), size);
    EXPECT_LT(*seen.rbegin(), size);
  }
}

template <class F>
class Frames : public testing::Test {};
using Families = testing::Types<core::Ipv4, core::Ipv6>;
TYPED_TEST_SUITE(Frames, Families);

TYPED_TEST(Frames, KeepTheirChecksumWhenTheyAreStamped) {
  using F = TypeParam;
  const FlowSpace<F> space{10, 3, 6};
  for (const std::uint8_t proto : {core::kIpProtoTcp, core::kIpProtoUdp}) {
    FrameShape shape;
    shape.proto = proto;
    const FrameOffsets at = FrameOffsets::of(F::kFamily, proto);
    for (const std::uint32_t length : {at.shortest(), 570u, 1514u}) {
      for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{0x0123456789ab}}) {
        std::vector<std::uint8_t> frame(length);
        const auto key = space.forward(7);
        write_headers<F>(frame.data(), shape, key, core::kTcpAck, length);
        Stamp(value).put(frame.data(), at);

        const std::uint16_t wanted =
            core::l4_checksum(core::IpAddress(key.src), core::IpAddress(key.dst), proto,
                              frame.data() + at.l4, length - at.l4);
        const std::uint16_t found = core::load_raw16(frame.data() + at.checksum);
        EXPECT_EQ(found % 0xffff, wanted % 0xffff) << int{proto} << " " << length;
      }
    }
  }
}

TEST(Note, ComesBackFromAPayload) {
  std::uint8_t payload[kStampBytes];
  Note{123'456, Note::kAnswer}.store(payload);

  const Note note = Note::load(payload);

  EXPECT_EQ(note.flow, 123'456u);
  EXPECT_EQ(note.kind, Note::kAnswer);
}

TEST(AnswerNeighbour, AnswersAnArpRequestForAnyAddress) {
  std::uint8_t frame[60] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 0x08, 0x06,
                            0,    1,    8,    0,    6,    4,    0, 1, 2, 0, 0, 0, 0,    1,
                            9,    0,    0,    2,    0,    0,    0, 0, 0, 0, 9, 0, 0,    1};
  std::uint32_t length = sizeof frame;
  const core::MacAddress own{{2, 0, 0, 0, 0, 9}};

  ASSERT_TRUE(answer_neighbour(frame, length, own));

  EXPECT_EQ(core::MacAddress::load(frame), (core::MacAddress{{2, 0, 0, 0, 0, 1}}));
  EXPECT_EQ(core::load_be16(frame + 20), 2);
  EXPECT_EQ(core::MacAddress::load(frame + 22), own);
  EXPECT_EQ(core::load_be32(frame + 28), 0x09000001u);
  EXPECT_EQ(core::load_be32(frame + 38), 0x09000002u);
  EXPECT_FALSE(answer_neighbour(frame, length, own)) << "an answer is no request";
}

TEST(AnswerNeighbour, LeavesOtherFramesAlone) {
  std::uint8_t frame[60] = {};
  core::store_be16(frame + 12, core::kEtherTypeIpv4);
  std::uint32_t length = sizeof frame;

  EXPECT_FALSE(answer_neighbour(frame, length, {}));
}

}  // namespace
}  // namespace sluice::bench
