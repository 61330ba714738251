#include "dataplane/core/net/checksum.h"

#include <random>

#include <gtest/gtest.h>

#include "dataplane/core/net/crc32c.h"
#include "test/support/packet_builder.h"
#include "test/support/reference_checksum.h"

namespace sluice::core {
namespace {

using test::Bytes;

Bytes random_bytes(std::mt19937& random, std::size_t size) {
  Bytes bytes(size);
  for (auto& byte : bytes) {
    byte = static_cast<std::uint8_t>(random());
  }
  return bytes;
}

TEST(Checksum, SumsAnyLengthLikeTheReference) {
  std::mt19937 random(1);
  for (std::size_t size = 0; size < 300; ++size) {
    const Bytes bytes = random_bytes(random, size);
    EXPECT_EQ(Be16::from_raw(fold(sum_bytes(bytes.data(), size))).host(),
              test::reference_sum(bytes))
        << size;
  }
}

TEST(Checksum, SumsTheLargestPacketOfOnes) {
  const Bytes bytes(65535, 0xff);
  EXPECT_EQ(Be16::from_raw(fold(sum_bytes(bytes.data(), bytes.size()))).host(),
            test::reference_sum(bytes));
}

TEST(Checksum, SegmentsAtOddPositionsSumLikeTheWhole) {
  std::mt19937 random(2);
  for (int round = 0; round < 1000; ++round) {
    const Bytes bytes = random_bytes(random, random() % 200);
    SegmentedSum sum;
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t step = std::min<std::size_t>(bytes.size() - at, random() % 17);
      sum.add(bytes.data() + at, step);
      at += step;
    }
    EXPECT_EQ(fold(sum.value()), fold(sum_bytes(bytes.data(), bytes.size())));
  }
}

// RFC 1071, section 3: the worked example.
TEST(Checksum, AgreesWithTheExampleOfTheRfc) {
  const Bytes bytes = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};
  EXPECT_EQ(Be16::from_raw(fold(sum_bytes(bytes.data(), bytes.size()))).host(), 0xddf2);
}

TEST(Checksum, OfIpv4HeaderIsWhatTheBuilderWrote) {
  const Bytes frame = test::PacketBuilder().eth().ipv4("10.1.2.3", "192.0.2.9").udp(1, 2).build();
  EXPECT_EQ(ipv4_header_checksum(frame.data() + 14, 20), Be16::load(frame.data() + 24).raw());
  EXPECT_TRUE(ipv4_whole_header_valid(frame.data() + 14));
}

// Random headers of whole packets with a right, a wrong and any checksum.
TEST(Checksum, OfWholeHeaderIsValidWhenAllItsWordsSumUp) {
  std::mt19937 random(5);
  for (int round = 0; round < 30000; ++round) {
    Bytes header = random_bytes(random, 20);
    if (round % 7 == 0) {
      std::fill(header.begin() + 1, header.end(), std::uint8_t{0xff});
    }
    header[6] &= 0xc0;  // of the flags only those a whole packet may have; offset 0
    header[7] = 0;
    if (round % 3 != 0) {
      const std::uint16_t right = ipv4_header_checksum(header.data(), 20);
      std::memcpy(header.data() + 10, &right, 2);
      header[10] = static_cast<std::uint8_t>(header[10] + (round % 3 == 1 ? 0 : 1));
    }
    EXPECT_EQ(ipv4_whole_header_valid(header.data()),
              fold(sum_bytes(header.data(), header.size())) == 0xffff);
  }
}

TEST(Checksum, DeltaOfNoChangeIsZeroAndChangesNothing) {
  ChecksumDelta delta;
  delta.replace(Be16::from_host(80), Be16::from_host(80));
  delta.replace(Be32::from_host(80), Be32::from_host(80));
  EXPECT_EQ(delta.raw(), 0);
  EXPECT_EQ(delta.apply(0x1234), 0x1234);
}

TEST(Checksum, NegatedDeltaUndoes) {
  std::mt19937 random(3);
  for (int round = 0; round < 10000; ++round) {
    const Bytes bytes = random_bytes(random, 24);
    const auto field = static_cast<std::uint16_t>(~fold(sum_bytes(bytes.data(), 24)));
    ChecksumDelta delta;
    delta.replace(Be32::load(bytes.data()), Be32::from_raw(static_cast<std::uint32_t>(random())));
    EXPECT_EQ(delta.negated().apply(delta.apply(field)), field);
  }
}

TEST(Checksum, UdpRuleKeepsNoChecksumAndNeverSendsZero) {
  ChecksumDelta delta;
  delta.replace(Be16::from_host(1), Be16::from_host(2));
  EXPECT_EQ(delta.apply_udp(0), 0);
  const auto before = Be16::from_host(0x0001).raw();  // one less than the delta: new value is 0
  EXPECT_EQ(delta.apply(before), 0);
  EXPECT_EQ(delta.apply_udp(before), 0xffff);
}

// RFC 3720 B.4: known answers of CRC32c.
TEST(Crc32c, AgreesWithKnownAnswers) {
  const Bytes zeros(32, 0);
  EXPECT_EQ(~crc32c_update(~0u, zeros.data(), 32), 0x8a9136aau);
  const Bytes ones(32, 0xff);
  EXPECT_EQ(~crc32c_update(~0u, ones.data(), 32), 0x62a8ab43u);
}

TEST(Crc32c, TableAndInstructionAgree) {
  std::mt19937 random(4);
  for (std::size_t size = 0; size < 100; ++size) {
    const Bytes bytes = random_bytes(random, size);
    EXPECT_EQ(crc32c_update(7, bytes.data(), size), crc32c_update_by_table(7, bytes.data(), size));
  }
}

TEST(Crc32c, SctpCrcIsThatOfTheReference) {
  std::mt19937 random(5);
  for (std::size_t size = 12; size < 200; ++size) {
    const Bytes bytes = random_bytes(random, size);
    EXPECT_EQ(sctp_crc(bytes.data(), size), test::reference_sctp_crc(bytes));
  }
}

TEST(Crc32c, ChangeOfFourBytesIsPredictedWithoutThePayload) {
  std::mt19937 random(6);
  for (std::size_t size : {12, 13, 16, 60, 64, 1460, 9000, 65495}) {
    Bytes bytes = random_bytes(random, size);
    const std::uint32_t before = sctp_crc(bytes.data(), size);
    std::uint32_t word;
    std::memcpy(&word, bytes.data(), 4);
    const auto changed = static_cast<std::uint32_t>(random());
    word ^= changed;
    std::memcpy(bytes.data(), &word, 4);
    EXPECT_EQ(before ^ crc32c_change(changed, size - 4), sctp_crc(bytes.data(), size)) << size;
  }
}

}  // namespace
}  // namespace sluice::core
