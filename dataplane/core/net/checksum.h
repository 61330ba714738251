#pragma once

#include <cstddef>
#include <cstdint>

#include "dataplane/core/net/address.h"

namespace sluice::core {

/// Ones'-complement arithmetic on 16-bit words *as they lie in memory* (no byte swapping: the sum
/// is byte-order independent). Source: RFC 1071, RFC 1624 eqn. 3.

/// Folds a 32- or 64-bit partial sum to 16 bits, not complemented.
[[nodiscard]] std::uint16_t fold(std::uint64_t sum) noexcept;

/// Sum of `length` bytes (odd length: padded by a zero byte), unfolded.
[[nodiscard]] std::uint64_t sum_bytes(const void* data, std::size_t length) noexcept;

/// What a change of header words does to a checksum: sum over (~old + new). Zero: no change.
/// One delta serves every packet of a flow and direction; the other direction uses its negation.
class ChecksumDelta {
 public:
  constexpr ChecksumDelta() = default;
  explicit constexpr ChecksumDelta(std::uint16_t raw) : value_(raw) {}
  void replace(Be16 before, Be16 after) noexcept;
  void replace(Be32 before, Be32 after) noexcept;
  void replace(const Ipv6Address& before, const Ipv6Address& after) noexcept;
  [[nodiscard]] constexpr std::uint16_t raw() const noexcept { return value_; }
  /// The delta that undoes this one.
  [[nodiscard]] constexpr ChecksumDelta negated() const noexcept {
    return ChecksumDelta(static_cast<std::uint16_t>(~value_));
  }
  /// New value of a checksum field. Never yields 0x0000 from a field that was not 0xffff... see
  /// apply_udp for the UDP rule.
  [[nodiscard]] std::uint16_t apply(std::uint16_t field) const noexcept;
  /// UDP: 0 means "no checksum" and stays 0 (IPv4); a computed 0 is sent as 0xffff (RFC 768).
  [[nodiscard]] std::uint16_t apply_udp(std::uint16_t field) const noexcept;

 private:
  std::uint16_t value_ = 0;
};

/// IPv4 header checksum over `header_length` bytes with the field itself taken as zero.
[[nodiscard]] std::uint16_t ipv4_header_checksum(const std::uint8_t* header,
                                                 std::size_t header_length) noexcept;

/// TCP or UDP checksum from scratch (field taken as zero) over one contiguous L4 segment.
[[nodiscard]] std::uint16_t l4_checksum(const IpAddress& src, const IpAddress& dst,
                                        std::uint8_t protocol, const std::uint8_t* l4,
                                        std::size_t length) noexcept;

/// The folded, *not complemented* pseudo-header sum a sender with checksum offload leaves in the
/// field (CHECKSUM_PARTIAL). Design section 5, rx_partial_csum.
[[nodiscard]] std::uint16_t pseudo_header_sum(const IpAddress& src, const IpAddress& dst,
                                              std::uint8_t protocol, std::size_t l4_length) noexcept;

}  // namespace sluice::core
