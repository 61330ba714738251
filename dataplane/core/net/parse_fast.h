#pragma once

// The parser's common case, inline: Ethernet, an IP header without options or extension headers,
// a whole TCP or UDP packet between ordinary addresses. Everything else, and everything wrong, is
// left to parse_frame_general(), which decides alone what a frame is; this header only recognises
// frames for which that answer is known, and a test holds the two together.
//
// Conditions are combined with bitwise operators into two branches per family, which are taken the
// same way for every ordinary packet.

#include "dataplane/core/net/checksum.h"
#include "dataplane/core/net/headers.h"
#include "dataplane/core/net/parse.h"

namespace sluice::core {

namespace parse_detail {

/// Bytes of L4 that must be there: a TCP header without options, else a UDP header.
[[nodiscard]] inline std::uint32_t least_l4(std::uint8_t protocol) noexcept {
  return protocol == kIpProtoTcp ? kTcpHeaderLength : kUdpHeaderLength;
}

/// True for TCP with a data offset that its length does not hold.
[[nodiscard]] inline bool bad_tcp(std::uint8_t protocol, const std::uint8_t* l4,
                                  std::uint32_t l4_length) noexcept {
  if (protocol != kIpProtoTcp) {
    return false;
  }
  const std::uint32_t header = (l4[12] >> 4) * 4u;
  return (header < kTcpHeaderLength) | (header > l4_length);
}

inline void finish(const std::uint8_t* data, std::uint16_t l4_offset, std::uint16_t ip_length,
                   std::uint8_t protocol, ParsedFrame& out) noexcept {
  out.l3_offset = kEthernetLength;
  out.l4_offset = l4_offset;
  out.ip_length = ip_length;
  out.error = ParseError::kNone;
  out.protocol = protocol;
  out.tcp_flags = protocol == kIpProtoTcp ? data[l4_offset + 13] : std::uint8_t{0};
  out.multicast = (data[0] & 1) != 0;
}

[[nodiscard]] inline bool ipv4_fast(const std::uint8_t* data, std::uint32_t contiguous,
                                    std::uint32_t total, ParsedFrame& out) noexcept {
  constexpr std::uint16_t kL4 = kEthernetLength + ipv4::kHeaderLength;
  const std::uint8_t* ip = data + kEthernetLength;
  const std::uint8_t protocol = ip[ipv4::kProtocol];
  const std::uint16_t ip_length = load_be16(ip + ipv4::kTotalLength);
  const std::uint32_t need = kL4 + least_l4(protocol);
  const bool odd = (protocol != kIpProtoTcp && protocol != kIpProtoUdp) | (contiguous < need) |
                   (ip_length + kEthernetLength < need) | (ip_length + kEthernetLength > total) |
                   ((load_be16(ip + ipv4::kFragment) & 0x3fff) != 0) | !ipv4_plain_header_valid(ip);
  if (odd) {
    return false;
  }
  const std::uint64_t addresses = load_raw64(ip + ipv4::kSrc);
  const std::uint32_t ports = load_raw32(data + kL4);
  const auto first = ip[ipv4::kSrc];
  // 224 and above: multicast, class E, broadcast; the general parser tells them apart.
  const bool suspect =
      (first == 0) | (first == 127) | (first >= 224) | (ip[ipv4::kDst] == 127) |
      (((addresses >> 32) == (addresses & 0xffffffff)) & ((ports >> 16) == (ports & 0xffff))) |
      bad_tcp(protocol, data + kL4, ip_length - 20u);
  if (suspect) {
    return false;
  }
  const std::uint64_t tail = ports | static_cast<std::uint64_t>(protocol) << 32;
  std::memcpy(reinterpret_cast<std::uint8_t*>(&out.key4), &addresses, 8);
  std::memcpy(reinterpret_cast<std::uint8_t*>(&out.key4) + 8, &tail, 8);
  finish(data, kL4, ip_length, protocol, out);
  out.kind = FrameKind::kFlow4;
  out.hop_limit = ip[ipv4::kTtl];
  out.family = Family::kIpv4;
  return true;
}

[[nodiscard]] inline bool ipv6_fast(const std::uint8_t* data, std::uint32_t contiguous,
                                    std::uint32_t total, ParsedFrame& out) noexcept {
  constexpr std::uint16_t kL4 = kEthernetLength + ipv6::kHeaderLength;
  const std::uint8_t* ip = data + kEthernetLength;
  const std::uint8_t protocol = ip[ipv6::kNextHeader];
  const std::uint32_t need = kL4 + least_l4(protocol);
  const std::uint32_t ip_length = load_be16(ip + ipv6::kPayloadLength) + 40u;
  const bool odd = (protocol != kIpProtoTcp && protocol != kIpProtoUdp) | (contiguous < need) |
                   (ip_length > 0xffff) | (ip_length + kEthernetLength < need) |
                   (ip_length + kEthernetLength > total) | ((ip[0] & 0xf0) != 0x60);
  if (odd) {
    return false;
  }
  const std::uint64_t src_high = load_raw64(ip + ipv6::kSrc);
  const std::uint64_t dst_high = load_raw64(ip + ipv6::kDst);
  // A zero upper half: unspecified, loopback, IPv4-mapped. An equal one: perhaps a land packet.
  const bool same =
      (src_high == dst_high) & (load_raw64(ip + ipv6::kSrc + 8) == load_raw64(ip + ipv6::kDst + 8));
  const std::uint32_t ports = load_raw32(data + kL4);
  const bool suspect = (src_high == 0) | (dst_high == 0) | (ip[ipv6::kSrc] == 0xff) |
                       (same & ((ports >> 16) == (ports & 0xffff))) |
                       bad_tcp(protocol, data + kL4, ip_length - 40u);
  if (suspect) {
    return false;
  }
  auto* key = reinterpret_cast<std::uint8_t*>(&out.key6);
  const std::uint64_t tail[2] = {ports | static_cast<std::uint64_t>(protocol) << 32, 0};
  std::memcpy(key, ip + ipv6::kSrc, 32);
  std::memcpy(key + 32, tail, 16);
  finish(data, kL4, static_cast<std::uint16_t>(ip_length), protocol, out);
  out.kind = FrameKind::kFlow6;
  out.hop_limit = ip[ipv6::kHopLimit];
  out.family = Family::kIpv6;
  return true;
}

}  // namespace parse_detail

/// @return true when the frame is an ordinary TCP or UDP packet and `out` is what parse_frame()
/// would give; false: ask parse_frame(), `out` is untouched. Same bounds promise.
/// Source: RFC 1812 5.2.2 (header checks).
[[nodiscard]] inline bool parse_plain(const std::uint8_t* data, std::uint32_t contiguous,
                                      std::uint32_t total, ParsedFrame& out) noexcept {
  constexpr std::uint32_t kLeast = kEthernetLength + ipv4::kHeaderLength + kUdpHeaderLength;
  if (contiguous < kLeast) {
    return false;
  }
  // EtherType, and for IPv4 also version and header length, in one load.
  const std::uint32_t word = load_be32(data + kEthernetTypeOffset);
  if ((word >> 8) == (kEtherTypeIpv4 << 8 | 0x45u)) {
    return parse_detail::ipv4_fast(data, contiguous, total, out);
  }
  constexpr std::uint32_t kLeast6 = kEthernetLength + ipv6::kHeaderLength + kUdpHeaderLength;
  if ((word >> 16) == kEtherTypeIpv6 && contiguous >= kLeast6) {
    return parse_detail::ipv6_fast(data, contiguous, total, out);
  }
  return false;
}

/// What the worker calls: the common case inline, the rest by parse_frame().
inline void parse_frame_inline(const std::uint8_t* data, std::uint32_t contiguous,
                               std::uint32_t total, ParsedFrame& out) noexcept {
  if (!parse_plain(data, contiguous, total, out)) [[unlikely]] {
    parse_frame_general(data, contiguous, total, out);
  }
}

}  // namespace sluice::core
