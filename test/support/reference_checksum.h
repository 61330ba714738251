#pragma once

// Checksums computed the slow, obvious way: the oracle for dataplane/core/net and the source of
// right frames. Shares no code with it.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::test {

/// Sum of big-endian 16-bit words, folded, not complemented; host order. RFC 1071.
[[nodiscard]] inline std::uint16_t reference_sum(std::span<const std::uint8_t> bytes,
                                                 std::uint32_t start = 0) {
  std::uint64_t sum = start;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    sum += i % 2 == 0 ? std::uint64_t{bytes[i]} << 8 : bytes[i];
  }
  while (sum > 0xffff) {
    sum = (sum & 0xffff) + (sum >> 16);
  }
  return static_cast<std::uint16_t>(sum);
}

/// Pseudo-header sum; `addresses` is source then destination.
[[nodiscard]] inline std::uint16_t reference_pseudo_sum(std::span<const std::uint8_t> addresses,
                                                        std::uint8_t protocol, std::size_t length) {
  const auto n = static_cast<std::uint32_t>(length);
  const std::uint32_t start = (n >> 16) + (n & 0xffff) + protocol;
  return reference_sum(addresses, start);
}

/// CRC32c bit by bit over the SCTP packet with its CRC field as zero.
[[nodiscard]] inline std::uint32_t reference_sctp_crc(std::span<const std::uint8_t> sctp) {
  std::uint32_t crc = ~std::uint32_t{0};
  for (std::size_t i = 0; i < sctp.size(); ++i) {
    crc ^= i >= 8 && i < 12 ? 0u : sctp[i];
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0u);
    }
  }
  return ~crc;
}

}  // namespace sluice::test
