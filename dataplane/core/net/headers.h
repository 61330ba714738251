#pragma once

#include <cstdint>
#include <cstring>

#include "dataplane/core/net/byte_order.h"

namespace sluice::core {

/// Offsets and numbers of the headers we read and write. Headers are never overlaid with structs:
/// fields are loaded and stored by memcpy at these offsets, so alignment and aliasing never matter.

inline constexpr std::uint32_t kEthernetLength = 14;
inline constexpr std::uint32_t kEthernetTypeOffset = 12;
inline constexpr std::uint16_t kEtherTypeIpv4 = 0x0800;
inline constexpr std::uint16_t kEtherTypeArp = 0x0806;
inline constexpr std::uint16_t kEtherTypeIpv6 = 0x86dd;

inline constexpr std::uint8_t kIpProtoHopByHop = 0;
inline constexpr std::uint8_t kIpProtoIcmp = 1;
inline constexpr std::uint8_t kIpProtoTcp = 6;
inline constexpr std::uint8_t kIpProtoUdp = 17;
inline constexpr std::uint8_t kIpProtoRouting = 43;
inline constexpr std::uint8_t kIpProtoFragment = 44;
inline constexpr std::uint8_t kIpProtoIcmpv6 = 58;
inline constexpr std::uint8_t kIpProtoNone = 59;
inline constexpr std::uint8_t kIpProtoDestinationOptions = 60;
inline constexpr std::uint8_t kIpProtoSctp = 132;

/// IPv4 header (RFC 791), offsets from its start.
namespace ipv4 {
inline constexpr std::uint32_t kHeaderLength = 20;  // without options
inline constexpr std::uint32_t kTos = 1;
inline constexpr std::uint32_t kTotalLength = 2;
inline constexpr std::uint32_t kId = 4;
inline constexpr std::uint32_t kFragment = 6;
inline constexpr std::uint32_t kTtl = 8;
inline constexpr std::uint32_t kProtocol = 9;
inline constexpr std::uint32_t kChecksum = 10;
inline constexpr std::uint32_t kSrc = 12;
inline constexpr std::uint32_t kDst = 16;
inline constexpr std::uint16_t kDontFragment = 0x4000;
inline constexpr std::uint16_t kMoreFragments = 0x2000;
inline constexpr std::uint16_t kOffsetMask = 0x1fff;  // in units of 8 bytes
}  // namespace ipv4

/// IPv6 header (RFC 8200).
namespace ipv6 {
inline constexpr std::uint32_t kHeaderLength = 40;
inline constexpr std::uint32_t kPayloadLength = 4;
inline constexpr std::uint32_t kNextHeader = 6;
inline constexpr std::uint32_t kHopLimit = 7;
inline constexpr std::uint32_t kSrc = 8;
inline constexpr std::uint32_t kDst = 24;
inline constexpr std::uint32_t kFragmentHeaderLength = 8;
}  // namespace ipv6

inline constexpr std::uint32_t kTcpHeaderLength = 20;  // without options
inline constexpr std::uint32_t kUdpHeaderLength = 8;
inline constexpr std::uint32_t kIcmpHeaderLength = 8;
inline constexpr std::uint32_t kArpLength = 28;  // Ethernet and IPv4

inline constexpr std::uint8_t kIcmpEchoReply = 0;
inline constexpr std::uint8_t kIcmpUnreachable = 3;
inline constexpr std::uint8_t kIcmpSourceQuench = 4;
inline constexpr std::uint8_t kIcmpRedirect = 5;
inline constexpr std::uint8_t kIcmpEchoRequest = 8;
inline constexpr std::uint8_t kIcmpTimeExceeded = 11;
inline constexpr std::uint8_t kIcmpParameterProblem = 12;
inline constexpr std::uint8_t kIcmpv6Unreachable = 1;
inline constexpr std::uint8_t kIcmpv6TooBig = 2;
inline constexpr std::uint8_t kIcmpv6TimeExceeded = 3;
inline constexpr std::uint8_t kIcmpv6ParameterProblem = 4;
inline constexpr std::uint8_t kIcmpv6EchoRequest = 128;
inline constexpr std::uint8_t kIcmpv6EchoReply = 129;
inline constexpr std::uint8_t kNdFirst = 133;  // router solicitation
inline constexpr std::uint8_t kNdNeighborSolicitation = 135;
inline constexpr std::uint8_t kNdNeighborAdvertisement = 136;
inline constexpr std::uint8_t kNdLast = 137;  // redirect

/// Unaligned loads and stores in host order.
[[nodiscard]] inline std::uint16_t load_be16(const std::uint8_t* at) noexcept {
  return Be16::load(at).host();
}
[[nodiscard]] inline std::uint32_t load_be32(const std::uint8_t* at) noexcept {
  return Be32::load(at).host();
}
inline void store_be16(std::uint8_t* at, std::uint16_t value) noexcept {
  Be16::from_host(value).store(at);
}
inline void store_be32(std::uint8_t* at, std::uint32_t value) noexcept {
  Be32::from_host(value).store(at);
}

/// Unaligned loads and stores as the bytes lie (checksum words, compares).
[[nodiscard]] inline std::uint16_t load_raw16(const std::uint8_t* at) noexcept {
  std::uint16_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
[[nodiscard]] inline std::uint32_t load_raw32(const std::uint8_t* at) noexcept {
  std::uint32_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
[[nodiscard]] inline std::uint64_t load_raw64(const std::uint8_t* at) noexcept {
  std::uint64_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
inline void store_raw16(std::uint8_t* at, std::uint16_t value) noexcept {
  std::memcpy(at, &value, sizeof value);
}

}  // namespace sluice::core
