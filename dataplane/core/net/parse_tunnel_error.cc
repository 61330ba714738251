// Reads what an ICMP error quotes of a packet that we sent through a tunnel: the outer header we
// wrote, and of the packet inside as much as the router sent along.

#include <algorithm>
#include <array>

#include "dataplane/core/net/encapsulate.h"
#include "dataplane/core/net/icmp.h"

namespace sluice::core {

namespace {

/// A router of before RFC 1191 says 0: the next lower of the sizes in use (RFC 1191 7.1).
std::uint16_t plateau_below(std::uint32_t length) noexcept {
  constexpr std::array<std::uint16_t, 6> kPlateaus = {8166, 4352, 2002, 1492, 1006, kLeastMtu4};
  for (const std::uint16_t plateau : kPlateaus) {
    if (plateau < length) {
      return plateau;
    }
  }
  return kLeastMtu4;
}

/// The outer header at `at`. @return where the inner packet begins; 0: not a tunnel's.
std::uint32_t read_outer4(const std::uint8_t* data, std::uint32_t at, std::uint32_t end,
                          TunnelError& out) noexcept {
  if (end - at < ipv4::kHeaderLength || (data[at] >> 4) != 4) {
    return 0;
  }
  const std::uint8_t* ip = data + at;
  const std::uint32_t header = (ip[0] & 15u) * 4u;
  const std::uint8_t protocol = ip[ipv4::kProtocol];
  if (header < ipv4::kHeaderLength || (protocol != kIpProtoIpv4 && protocol != kIpProtoIpv6) ||
      (load_be16(ip + ipv4::kFragment) & ipv4::kOffsetMask) != 0) {
    return 0;
  }
  out.outer_src = IpAddress(Ipv4Address::load(ip + ipv4::kSrc));
  out.outer_dst = IpAddress(Ipv4Address::load(ip + ipv4::kDst));
  out.inner.family = protocol == kIpProtoIpv4 ? Family::kIpv4 : Family::kIpv6;
  if (out.kind == IcmpErrorKind::kTooBig && out.mtu == 0) {
    out.mtu = plateau_below(load_be16(ip + ipv4::kTotalLength));
  }
  return at + header;
}

std::uint32_t read_outer6(const std::uint8_t* data, std::uint32_t at, std::uint32_t end,
                          TunnelError& out) noexcept {
  if (end - at < ipv6::kHeaderLength || (data[at] >> 4) != 6) {
    return 0;
  }
  const std::uint8_t* ip = data + at;
  const std::uint8_t protocol = ip[ipv6::kNextHeader];  // ours have no extension headers
  if (protocol != kIpProtoIpv4 && protocol != kIpProtoIpv6) {
    return 0;
  }
  out.outer_src = IpAddress(Ipv6Address::load(ip + ipv6::kSrc));
  out.outer_dst = IpAddress(Ipv6Address::load(ip + ipv6::kDst));
  out.inner.family = protocol == kIpProtoIpv4 ? Family::kIpv4 : Family::kIpv6;
  return at + ipv6::kHeaderLength;
}

/// Type, code and MTU. @return false: not an error that says something about the path.
bool read_kind(const std::uint8_t* icmp, bool v4, TunnelError& out) noexcept {
  const std::uint8_t type = icmp[0];
  out.kind = IcmpErrorKind::kHostUnreachable;
  if (v4) {
    if (type == kIcmpUnreachable && icmp[1] == 4) {
      out.kind = IcmpErrorKind::kTooBig;
      out.mtu = load_be16(icmp + 6);
    }
    return type == kIcmpUnreachable || type == kIcmpTimeExceeded;
  }
  if (type == kIcmpv6TooBig) {
    out.kind = IcmpErrorKind::kTooBig;
    out.mtu = static_cast<std::uint16_t>(std::min<std::uint32_t>(load_be32(icmp + 4), 0xffff));
  }
  return type == kIcmpv6TooBig || type == kIcmpv6Unreachable || type == kIcmpv6TimeExceeded;
}

}  // namespace

bool parse_tunnel_error(const std::uint8_t* data, std::uint32_t contiguous,
                        const ParsedFrame& frame, TunnelError& out) noexcept {
  out = TunnelError();
  const bool v4 = frame.kind == FrameKind::kIcmp4;
  if (!v4 && frame.kind != FrameKind::kIcmp6) {
    return false;
  }
  const std::uint32_t end = std::min(contiguous, std::uint32_t{frame.l3_offset} + frame.ip_length);
  const std::uint32_t quote = frame.l4_offset + std::uint32_t{kIcmpHeaderLength};
  if (quote > end || !read_kind(data + frame.l4_offset, v4, out)) {
    return false;
  }
  const std::uint32_t inner =
      v4 ? read_outer4(data, quote, end, out) : read_outer6(data, quote, end, out);
  if (inner == 0) {
    return false;
  }
  QuotedPacket quoted;
  if (parse_quoted(data, inner, end, out.inner.family, quoted)) {
    out.has_flow = true;
    out.inner = quoted.inner;
  }
  return true;
}

}  // namespace sluice::core
