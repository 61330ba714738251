#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "dataplane/core/net/address.h"

namespace sluice::core {

/// Ones'-complement arithmetic on 16-bit words *as they lie in memory* (no byte swapping: the sum
/// is byte-order independent). Source: RFC 1071, RFC 1624 eqn. 3.

/// Folds a 32- or 64-bit partial sum to 16 bits, not complemented.
[[nodiscard]] constexpr std::uint16_t fold(std::uint64_t sum) noexcept {
  sum = (sum & 0xffffffff) + (sum >> 32);
  sum = (sum & 0xffffffff) + (sum >> 32);
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(sum);
}

/// Sum of `length` bytes (odd length: padded by a zero byte), unfolded. At most 2^32 bytes.
[[nodiscard]] std::uint64_t sum_bytes(const void* data, std::size_t length) noexcept;

/// Sum over pieces that lie apart (segments of a frame); a piece may begin at an odd position.
class SegmentedSum {
 public:
  void add(const void* data, std::size_t length) noexcept {
    std::uint16_t part = fold(sum_bytes(data, length));
    if (odd_) {
      part = __builtin_bswap16(part);  // RFC 1071, 2(B): a byte-shifted sum is the swapped sum
    }
    sum_ += part;
    odd_ = odd_ != ((length & 1) != 0);
  }
  [[nodiscard]] std::uint64_t value() const noexcept { return sum_; }

 private:
  std::uint64_t sum_ = 0;
  bool odd_ = false;
};

/// What a change of header words does to a checksum: sum over (~old + new). Zero: no change.
/// One delta serves every packet of a flow and direction; the other direction uses its negation.
class ChecksumDelta {
 public:
  constexpr ChecksumDelta() = default;
  explicit constexpr ChecksumDelta(std::uint16_t raw) : value_(raw) {}
  void replace(Be16 before, Be16 after) noexcept {
    if (before != after) {
      add(static_cast<std::uint16_t>(~before.raw()), after.raw());
    }
  }
  void replace(Be32 before, Be32 after) noexcept {
    if (before != after) {
      add(~before.raw(), after.raw());
    }
  }
  void replace(const Ipv6Address& before, const Ipv6Address& after) noexcept;
  [[nodiscard]] constexpr std::uint16_t raw() const noexcept { return value_; }
  /// The delta that undoes this one.
  [[nodiscard]] constexpr ChecksumDelta negated() const noexcept {
    return ChecksumDelta(static_cast<std::uint16_t>(~value_));
  }
  /// New value of a checksum field (raw, as it lies in the packet). Equal to what a computation
  /// from scratch gives whenever the field was right; a wrong field stays wrong.
  [[nodiscard]] constexpr std::uint16_t apply(std::uint16_t field) const noexcept {
    std::uint32_t sum = static_cast<std::uint16_t>(~field);
    sum += value_;
    sum = (sum & 0xffff) + (sum >> 16);
    return static_cast<std::uint16_t>(~sum);
  }
  /// UDP: 0 means "no checksum" and stays 0 (IPv4); a computed 0 is sent as 0xffff (RFC 768).
  [[nodiscard]] constexpr std::uint16_t apply_udp(std::uint16_t field) const noexcept {
    const std::uint16_t sum = apply(field);
    const std::uint16_t sent = sum == 0 ? std::uint16_t{0xffff} : sum;
    return field == 0 ? std::uint16_t{0} : sent;
  }

 private:
  constexpr void add(std::uint64_t not_before, std::uint64_t after) noexcept {
    value_ = fold(value_ + not_before + after);
  }
  std::uint16_t value_ = 0;
};

/// IPv4 header checksum over `header_length` bytes with the field itself taken as zero.
/// Precondition: header_length >= 20.
[[nodiscard]] std::uint16_t ipv4_header_checksum(const std::uint8_t* header,
                                                 std::size_t header_length) noexcept;

/// True when the 20-byte header at `header` sums up. Branch-free, about 4 cycles.
/// Ones'-complement sums are sums modulo 65535, and 2^64 is 1 modulo 65535: 64-bit words may be
/// added with end-around carry, and the remainder test is one multiplication.
/// Precondition: no fragment, so the first word ends in 0 and has room for another one of 32 bits.
[[nodiscard]] inline bool ipv4_whole_header_valid(const std::uint8_t* header) noexcept {
  std::uint64_t first;
  std::uint64_t second;
  std::uint32_t last;
  static_assert(std::endian::native == std::endian::little);
  std::memcpy(&first, header, 8);
  std::memcpy(&second, header + 8, 8);
  std::memcpy(&last, header + 16, 4);
  std::uint64_t sum = first + last;
  sum += second;
  sum += sum < second ? 1 : 0;
  return sum % 0xffff == 0;
}

/// TCP, UDP or ICMPv6 checksum from scratch (field taken as zero) over one contiguous L4 segment.
/// UDP: never 0, as it has to be sent (RFC 768).
[[nodiscard]] std::uint16_t l4_checksum(const IpAddress& src, const IpAddress& dst,
                                        std::uint8_t protocol, const std::uint8_t* l4,
                                        std::size_t length) noexcept;

/// The folded, *not complemented* pseudo-header sum a sender with checksum offload leaves in the
/// field (CHECKSUM_PARTIAL). Design section 5, rx_partial_csum.
[[nodiscard]] std::uint16_t pseudo_header_sum(const IpAddress& src, const IpAddress& dst,
                                              std::uint8_t protocol,
                                              std::size_t l4_length) noexcept;

/// Offset of the 16-bit checksum inside the L4 header: TCP 16, UDP 6, ICMP and ICMPv6 2.
/// @return false for a protocol without one.
[[nodiscard]] constexpr bool l4_checksum_offset(std::uint8_t protocol,
                                                std::size_t& offset) noexcept {
  offset = protocol == 6 ? 16 : protocol == 17 ? 6 : 2;
  return protocol == 6 || protocol == 17 || protocol == 1 || protocol == 58;
}

}  // namespace sluice::core
