#pragma once

// The parser's common case, inline: Ethernet, an IP header without options or extension headers,
// a whole TCP or UDP packet between ordinary addresses. Everything else, and everything wrong, is
// left to parse_frame_general(), which decides alone what a frame is; this header only recognises
// frames for which that answer is known, and a test holds the two together.
//
// Its conditions are branches that no ordinary packet takes, so all are predicted. Joined by
// bitwise operators instead they took more instructions and half as many cycles again (21 against
// 14 for an IPv4 packet in cache, 2.6 GHz).

#include <bit>
#include <cstddef>

#include "dataplane/core/net/checksum.h"
#include "dataplane/core/net/headers.h"
#include "dataplane/core/net/parse.h"

namespace sluice::core {

namespace parse_detail {

/// Of TCP and UDP whose header lies inside packet and readable bytes: what ParsedFrame::tcp_flags is
/// of them. kNoHeader: anything else. `frame_end` is where the packet ends, from the start of the
/// frame.
inline constexpr std::uint32_t kNoHeader = 0x100;
[[nodiscard, gnu::always_inline]] inline std::uint32_t l4_flags(
    const std::uint8_t* data, std::uint32_t l4_offset, std::uint8_t protocol,
    std::uint32_t contiguous, std::uint32_t frame_end) noexcept {
  if (protocol == kIpProtoTcp) [[likely]] {
    if (contiguous < l4_offset + kTcpHeaderLength) [[unlikely]] {
      return kNoHeader;
    }
    const std::uint32_t header = (data[l4_offset + 12] >> 4) * 4u;
    const bool fits = header >= kTcpHeaderLength && l4_offset + header <= frame_end;
    return fits ? data[l4_offset + 13] : kNoHeader;
  }
  const bool fits = protocol == kIpProtoUdp && contiguous >= l4_offset + kUdpHeaderLength &&
                    frame_end >= l4_offset + kUdpHeaderLength;
  return fits ? 0 : kNoHeader;
}

/// Writes everything but the key in two stores. Precondition: the frame is not to a group.
/// @param hop_and_protocol  the one in the low byte, the other above it.
[[gnu::always_inline]] inline void finish(std::uint16_t l4_offset, std::uint32_t ip_length,
                                          std::uint32_t hop_and_protocol, std::uint32_t flags,
                                          Family family, ParsedFrame& out) noexcept {
  static_assert(std::endian::native == std::endian::little);
  static_assert(offsetof(ParsedFrame, l3_offset) == 48 && offsetof(ParsedFrame, l4_offset) == 50 &&
                offsetof(ParsedFrame, ip_length) == 52 && offsetof(ParsedFrame, kind) == 54 &&
                offsetof(ParsedFrame, error) == 55 && offsetof(ParsedFrame, hop_limit) == 56 &&
                offsetof(ParsedFrame, protocol) == 57 && offsetof(ParsedFrame, tcp_flags) == 58 &&
                offsetof(ParsedFrame, multicast) == 59 && offsetof(ParsedFrame, family) == 60);
  const auto kind =
      static_cast<std::uint64_t>(family == Family::kIpv4 ? FrameKind::kFlow4 : FrameKind::kFlow6);
  const std::uint64_t where = kEthernetLength | std::uint64_t{l4_offset} << 16 |
                              std::uint64_t{ip_length} << 32 | kind << 48;
  const std::uint64_t what =
      hop_and_protocol | flags << 16 | static_cast<std::uint64_t>(family) << 32;
  auto* at = reinterpret_cast<std::uint8_t*>(&out) + offsetof(ParsedFrame, l3_offset);
  std::memcpy(at, &where, sizeof where);
  std::memcpy(at + 8, &what, sizeof what);
}

[[nodiscard, gnu::always_inline]] inline bool ipv4_fast(const std::uint8_t* data,
                                                        std::uint32_t contiguous,
                                                        std::uint32_t total,
                                                        ParsedFrame& out) noexcept {
  constexpr std::uint16_t kL4 = kEthernetLength + ipv4::kHeaderLength;
  const std::uint8_t* ip = data + kEthernetLength;
  const std::uint8_t protocol = ip[ipv4::kProtocol];
  const std::uint32_t ip_length = load_be16(ip + ipv4::kTotalLength);
  const std::uint32_t frame_end = ip_length + kEthernetLength;
  constexpr std::uint16_t kFragmented = ipv4::kMoreFragments | ipv4::kOffsetMask;
  if ((load_raw16(ip + ipv4::kFragment) & Be16::from_host(kFragmented).raw()) != 0 ||
      frame_end > total || !ipv4_whole_header_valid(ip)) [[unlikely]] {
    return false;
  }
  const std::uint32_t flags = l4_flags(data, kL4, protocol, contiguous, frame_end);
  if (flags == kNoHeader) [[unlikely]] {
    return false;
  }
  const std::uint64_t addresses = load_raw64(ip + ipv4::kSrc);
  const std::uint8_t first = ip[ipv4::kSrc];
  // 224 and above: multicast, class E, broadcast; the general parser tells them apart. Equal
  // addresses: perhaps a land packet.
  if (first == 0 || first >= 224 || first == 127 || ip[ipv4::kDst] == 127 ||
      std::rotl(addresses, 32) == addresses) [[unlikely]] {
    return false;
  }
  const std::uint64_t tail = load_raw32(data + kL4) | static_cast<std::uint64_t>(protocol) << 32;
  auto* key = reinterpret_cast<std::uint8_t*>(&out.key4);
  std::memcpy(key, &addresses, sizeof addresses);
  std::memcpy(key + 8, &tail, sizeof tail);
  static_assert(ipv4::kProtocol == ipv4::kTtl + 1);
  finish(kL4, ip_length, load_raw16(ip + ipv4::kTtl), flags, Family::kIpv4, out);
  return true;
}

[[nodiscard, gnu::always_inline]] inline bool ipv6_fast(const std::uint8_t* data,
                                                        std::uint32_t contiguous,
                                                        std::uint32_t total,
                                                        ParsedFrame& out) noexcept {
  constexpr std::uint16_t kL4 = kEthernetLength + ipv6::kHeaderLength;
  const std::uint8_t* ip = data + kEthernetLength;
  const std::uint8_t protocol = ip[ipv6::kNextHeader];
  const std::uint32_t ip_length = load_be16(ip + ipv6::kPayloadLength) + ipv6::kHeaderLength;
  const std::uint32_t frame_end = ip_length + kEthernetLength;
  if ((ip[0] & 0xf0) != 0x60 || ip_length > 0xffff || frame_end > total) [[unlikely]] {
    return false;
  }
  const std::uint32_t flags = l4_flags(data, kL4, protocol, contiguous, frame_end);
  if (flags == kNoHeader) [[unlikely]] {
    return false;
  }
  const std::uint64_t src_high = load_raw64(ip + ipv6::kSrc);
  const std::uint64_t dst_high = load_raw64(ip + ipv6::kDst);
  // A zero upper half: unspecified, loopback, IPv4-mapped. Equal lower halves: perhaps a land
  // packet.
  if (src_high == 0 || dst_high == 0 || ip[ipv6::kSrc] == 0xff ||
      load_raw64(ip + ipv6::kSrc + 8) == load_raw64(ip + ipv6::kDst + 8)) [[unlikely]] {
    return false;
  }
  auto* key = reinterpret_cast<std::uint8_t*>(&out.key6);
  const std::uint64_t tail[2] = {
      load_raw32(data + kL4) | static_cast<std::uint64_t>(protocol) << 32, 0};
  std::memcpy(key, ip + ipv6::kSrc, 32);
  std::memcpy(key + 32, tail, sizeof tail);
  finish(kL4, ip_length, ip[ipv6::kHopLimit] | std::uint32_t{protocol} << 8, flags, Family::kIpv6,
         out);
  return true;
}

}  // namespace parse_detail

/// @return true when the frame is an ordinary TCP or UDP packet and `out` is what parse_frame()
/// would give; false: ask parse_frame(), `out` is untouched. Same bounds promise.
/// Source: RFC 1812 5.2.2 (header checks).
[[nodiscard, gnu::always_inline]] inline bool parse_plain(const std::uint8_t* data,
                                                          std::uint32_t contiguous,
                                                          std::uint32_t total,
                                                          ParsedFrame& out) noexcept {
  constexpr std::uint32_t kLeast = kEthernetLength + ipv4::kHeaderLength + kUdpHeaderLength;
  if (contiguous < kLeast || (data[0] & 1) != 0) [[unlikely]] {  // too short, or to a group
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
/// @return whether `out` is a flow, kFlow4 or kFlow6.
[[gnu::always_inline]] inline bool parse_frame_inline(const std::uint8_t* data,
                                                      std::uint32_t contiguous,
                                                      std::uint32_t total,
                                                      ParsedFrame& out) noexcept {
  if (parse_plain(data, contiguous, total, out)) [[likely]] {
    return true;
  }
  parse_frame_general(data, contiguous, total, out);
  return out.kind == FrameKind::kFlow4 || out.kind == FrameKind::kFlow6;
}

}  // namespace sluice::core
