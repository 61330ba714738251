// Reads the packet an ICMP error quotes. It is what a router further on had in hand: already
// translated by us, its TTL spent, cut after 8 bytes of L4. Nothing about it is verified beyond
// what is needed to find addresses and ports, and ports are never taken from a later fragment.

#include <algorithm>

#include "dataplane/core/net/headers.h"
#include "dataplane/core/net/ip_chain.h"
#include "dataplane/core/net/parse.h"

namespace sluice::core {

namespace {

constexpr std::uint32_t kQuotedL4 = 8;  // RFC 792 promises no more; holds the ports

bool is_error4(std::uint8_t type) noexcept {
  return type == kIcmpUnreachable || type == kIcmpSourceQuench || type == kIcmpTimeExceeded ||
         type == kIcmpParameterProblem;
}

bool is_error6(std::uint8_t type) noexcept {
  return type >= kIcmpv6Unreachable && type <= kIcmpv6ParameterProblem;
}

bool is_flow_protocol(std::uint8_t protocol) noexcept {
  return protocol == kIpProtoTcp || protocol == kIpProtoUdp || protocol == kIpProtoSctp;
}

/// Header of a quoted IPv4 packet at out.inner_l3_offset. @return false: not usable.
bool read_quoted4(const std::uint8_t* data, std::uint32_t end, QuotedPacket& out) noexcept {
  const std::uint32_t at = out.inner_l3_offset;
  if (end < at || end - at < ipv4::kHeaderLength) {
    return false;
  }
  const std::uint8_t* ip = data + at;
  const std::uint32_t header_length = (ip[0] & 15u) * 4u;
  if ((ip[0] >> 4) != 4 || header_length < ipv4::kHeaderLength || header_length > end - at) {
    return false;
  }
  out.inner.ip_length = load_be16(ip + ipv4::kTotalLength);
  out.inner.protocol = ip[ipv4::kProtocol];
  out.inner.hop_limit = ip[ipv4::kTtl];
  out.inner.family = Family::kIpv4;
  out.inner.key4.src = Be32::load(ip + ipv4::kSrc);
  out.inner.key4.dst = Be32::load(ip + ipv4::kDst);
  out.inner.key4.proto = out.inner.protocol;
  out.later_fragment = (load_be16(ip + ipv4::kFragment) & ipv4::kOffsetMask) != 0;
  out.inner.l4_offset = static_cast<std::uint16_t>(at + header_length);
  return !out.later_fragment;
}

bool read_quoted6(const std::uint8_t* data, std::uint32_t end, QuotedPacket& out) noexcept {
  const std::uint32_t at = out.inner_l3_offset;
  if (end < at || end - at < ipv6::kHeaderLength || (data[at] >> 4) != 6) {
    return false;
  }
  const std::uint8_t* ip = data + at;
  const Ipv6Chain chain = walk_ipv6_chain(
      data, at + static_cast<std::uint32_t>(ipv6::kHeaderLength), end, ip[ipv6::kNextHeader]);
  const std::uint32_t length = load_be16(ip + ipv6::kPayloadLength) + 40u;
  out.inner.ip_length = static_cast<std::uint16_t>(std::min<std::uint32_t>(length, 0xffff));
  out.inner.protocol = chain.protocol;
  out.inner.hop_limit = ip[ipv6::kHopLimit];
  out.inner.family = Family::kIpv6;
  out.inner.key6.src = Ipv6Address::load(ip + ipv6::kSrc);
  out.inner.key6.dst = Ipv6Address::load(ip + ipv6::kDst);
  out.inner.key6.proto = out.inner.protocol;
  out.later_fragment = chain.later_fragment;
  out.inner.l4_offset = static_cast<std::uint16_t>(chain.l4_offset);
  return chain.error == ParseError::kNone && !chain.opaque && !out.later_fragment;
}

/// Ports, and the TCP flags when enough was quoted.
bool read_quoted_l4(const std::uint8_t* data, std::uint32_t end, ParsedFrame& inner) noexcept {
  const std::uint32_t at = inner.l4_offset;
  if (!is_flow_protocol(inner.protocol) || end < at || end - at < kQuotedL4) {
    return false;
  }
  const std::uint8_t* l4 = data + at;
  if (inner.protocol == kIpProtoTcp && end - at >= kTcpHeaderLength) {
    inner.tcp_flags = l4[13];
  }
  const bool v4 = inner.family == Family::kIpv4;
  (v4 ? inner.key4.sport : inner.key6.sport) = Be16::load(l4);
  (v4 ? inner.key4.dport : inner.key6.dport) = Be16::load(l4 + 2);
  inner.kind = v4 ? FrameKind::kFlow4 : FrameKind::kFlow6;
  return true;
}

}  // namespace

bool parse_icmp_error(const std::uint8_t* data, std::uint32_t contiguous, const ParsedFrame& frame,
                      QuotedPacket& out) noexcept {
  out = QuotedPacket();
  const bool v4 = frame.kind == FrameKind::kIcmp4;
  if (!v4 && frame.kind != FrameKind::kIcmp6) {
    return false;
  }
  const std::uint32_t end = std::min(contiguous, std::uint32_t{frame.l3_offset} + frame.ip_length);
  const std::uint32_t quote = frame.l4_offset + static_cast<std::uint32_t>(kIcmpHeaderLength);
  const std::uint8_t type = data[frame.l4_offset];
  if (!(v4 ? is_error4(type) : is_error6(type)) || quote > end) {
    return false;
  }
  return parse_quoted(data, quote, end, frame.family, out);
}

bool parse_quoted(const std::uint8_t* data, std::uint32_t at, std::uint32_t end, Family family,
                  QuotedPacket& out) noexcept {
  out = QuotedPacket();
  out.inner_l3_offset = static_cast<std::uint16_t>(at);
  out.inner.l3_offset = out.inner_l3_offset;
  const bool header =
      family == Family::kIpv4 ? read_quoted4(data, end, out) : read_quoted6(data, end, out);
  return header && read_quoted_l4(data, end, out.inner);
}

}  // namespace sluice::core
