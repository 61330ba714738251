#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#ifdef __SSE4_2__
#include <nmmintrin.h>
#endif

namespace sluice::core {

/// CRC32c (Castagnoli), the checksum of SCTP. Source: RFC 9260 appendix A.
///
/// A CRC is linear: the CRC of two messages of equal length differs by the CRC of their XOR. A
/// change of the ports therefore changes the CRC by a value that depends on the changed bits and
/// on how many bytes follow, not on these bytes. crc32c_change() uses that: no pass over the
/// payload, frames in several segments need no copy, and a CRC that was wrong stays wrong.

inline constexpr std::uint32_t kCrc32cPolynomial = 0x82f63b78;  // reflected

/// 256 remainders of one byte, for machines without the instruction and for tests against it.
inline constexpr std::array<std::uint32_t, 256> kCrc32cTable = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? kCrc32cPolynomial : 0);
    }
    table[i] = crc;
  }
  return table;
}();

[[nodiscard]] constexpr std::uint32_t crc32c_update_by_table(std::uint32_t state,
                                                             const std::uint8_t* data,
                                                             std::size_t length) noexcept {
  for (std::size_t i = 0; i < length; ++i) {
    state = (state >> 8) ^ kCrc32cTable[(state ^ data[i]) & 0xff];
  }
  return state;
}

/// Runs `length` bytes through the register. Start with ~0; the CRC is the complement of the end.
[[nodiscard]] inline std::uint32_t crc32c_update(std::uint32_t state, const std::uint8_t* data,
                                                 std::size_t length) noexcept {
#ifdef __SSE4_2__
  std::uint64_t wide = state;
  for (; length >= 8; data += 8, length -= 8) {
    std::uint64_t word;
    std::memcpy(&word, data, sizeof word);
    wide = _mm_crc32_u64(wide, word);
  }
  state = static_cast<std::uint32_t>(wide);
  for (; length > 0; ++data, --length) {
    state = _mm_crc32_u8(state, *data);
  }
  return state;
#else
  return crc32c_update_by_table(state, data, length);
#endif
}

/// Where the CRC lies in the SCTP common header.
inline constexpr std::size_t kSctpCrcOffset = 8;
inline constexpr std::size_t kSctpHeaderLength = 12;

/// CRC of an SCTP packet with the field itself taken as zero, as to be stored little-endian.
/// Precondition: length >= kSctpHeaderLength.
[[nodiscard]] inline std::uint32_t sctp_crc(const std::uint8_t* sctp, std::size_t length) noexcept {
  constexpr std::array<std::uint8_t, 4> kZero{};
  std::uint32_t state = crc32c_update(~std::uint32_t{0}, sctp, kSctpCrcOffset);
  state = crc32c_update(state, kZero.data(), kZero.size());
  return ~crc32c_update(state, sctp + kSctpHeaderLength, length - kSctpHeaderLength);
}

/// By what a CRC changes (XOR) when `changed_bits`, the XOR of old and new value of four bytes as
/// they lie in memory (little-endian machine word), is applied with `bytes_after` bytes behind.
[[nodiscard]] std::uint32_t crc32c_change(std::uint32_t changed_bits,
                                          std::size_t bytes_after) noexcept;

}  // namespace sluice::core
