#include "dataplane/core/net/parse.h"

#include <algorithm>

#include "dataplane/core/net/checksum.h"
#include "dataplane/core/net/crc32c.h"
#include "dataplane/core/net/headers.h"
#include "dataplane/core/net/ip_chain.h"
#include "dataplane/core/net/parse_fast.h"
#include "dataplane/core/net/sctp_signal.h"

namespace sluice::core {

namespace {

/// The frame under the parser: `end` is where reading must stop.
struct Reader {
  const std::uint8_t* data;
  std::uint32_t contiguous;
  std::uint32_t total;
};

void bad(ParsedFrame& out, ParseError error) noexcept {
  out.kind = FrameKind::kBad;
  out.error = error;
}

void set_ports(const std::uint8_t* l4, ParsedFrame& out) noexcept {
  if (out.family == Family::kIpv4) {
    out.key4.sport = Be16::load(l4);
    out.key4.dport = Be16::load(l4 + 2);
  } else {
    out.key6.sport = Be16::load(l4);
    out.key6.dport = Be16::load(l4 + 2);
  }
}

void set_key4(const std::uint8_t* ip, ParsedFrame& out) noexcept {
  out.family = Family::kIpv4;
  out.key4 = FlowKey4{Be32::load(ip + ipv4::kSrc), Be32::load(ip + ipv4::kDst), {}, {}, 0, {}};
  out.key4.proto = out.protocol;
}

void set_key6(const std::uint8_t* ip, ParsedFrame& out) noexcept {
  out.family = Family::kIpv6;
  out.key6 = FlowKey6{
      Ipv6Address::load(ip + ipv6::kSrc), Ipv6Address::load(ip + ipv6::kDst), {}, {}, 0, {}};
  out.key6.proto = out.protocol;
}

bool is_land(const ParsedFrame& out) noexcept {
  return out.family == Family::kIpv4
             ? out.key4.src == out.key4.dst && out.key4.sport == out.key4.dport
             : out.key6.src == out.key6.dst && out.key6.sport == out.key6.dport;
}

/// Bytes of L4 header a flow's packet must have.
std::uint32_t least_flow_l4(std::uint8_t protocol) noexcept {
  switch (protocol) {
    case kIpProtoTcp:
      return kTcpHeaderLength;
    case kIpProtoUdp:
      return kUdpHeaderLength;
    default:
      return 12;  // SCTP common header
  }
}

bool is_flow_protocol(std::uint8_t protocol) noexcept {
  return protocol == kIpProtoTcp || protocol == kIpProtoUdp || protocol == kIpProtoSctp;
}

/// Ports and flags of TCP, UDP, SCTP. @param whole  false for a first fragment.
void parse_flow_l4(const Reader& in, bool whole, ParsedFrame& out) noexcept {
  const std::uint32_t l4_length = out.l4_length();
  const std::uint32_t readable = std::min(l4_length, in.contiguous - out.l4_offset);
  if (readable < least_flow_l4(out.protocol)) {
    return bad(out, ParseError::kTruncatedL4);
  }
  const std::uint8_t* l4 = in.data + out.l4_offset;
  if (out.protocol == kIpProtoTcp) {
    const std::uint32_t header = (l4[12] >> 4) * 4u;
    if (header < kTcpHeaderLength || (whole && header > l4_length)) {
      return bad(out, ParseError::kTruncatedL4);
    }
    out.tcp_flags = l4[13];
  } else if (out.protocol == kIpProtoSctp && readable > kSctpHeaderLength) {
    out.tcp_flags = sctp_signal(l4[kSctpHeaderLength]);
  }
  set_ports(l4, out);
  if (is_land(out)) {
    return bad(out, ParseError::kMartian);
  }
  out.kind = out.family == Family::kIpv4 ? FrameKind::kFlow4 : FrameKind::kFlow6;
}

void parse_l4(const Reader& in, ParsedFrame& out) noexcept {
  if (is_flow_protocol(out.protocol)) {
    return parse_flow_l4(in, true, out);
  }
  const bool v4 = out.family == Family::kIpv4;
  if (out.protocol != (v4 ? kIpProtoIcmp : kIpProtoIcmpv6)) {
    out.kind = FrameKind::kOtherIp;
    return;
  }
  constexpr std::uint32_t kLeastIcmpv6 = 4;  // type, code, checksum
  const std::uint32_t least = v4 ? kIcmpHeaderLength : kLeastIcmpv6;
  if (std::min(out.l4_length(), in.contiguous - out.l4_offset) < least) {
    return bad(out, ParseError::kTruncatedL4);
  }
  const std::uint8_t type = in.data[out.l4_offset];
  out.kind = v4                                    ? FrameKind::kIcmp4
             : type >= kNdFirst && type <= kNdLast ? FrameKind::kNd
                                                   : FrameKind::kIcmp6;
}

/// A fragment, after the addresses are known. @param offset  bytes.
void parse_fragment(const Reader& in, std::uint32_t offset, std::uint32_t end_offset,
                    ParsedFrame& out) noexcept {
  constexpr std::uint32_t kLargest = 65535;
  constexpr std::uint32_t kTcpOverlapOffset = 8;  // would overwrite the flags (RFC 3128)
  if (end_offset > kLargest || (offset == kTcpOverlapOffset && out.protocol == kIpProtoTcp)) {
    return bad(out, ParseError::kForbiddenHeader);
  }
  if (offset != 0) {
    out.l4_offset = 0;
  } else if (is_flow_protocol(out.protocol)) {
    parse_flow_l4(in, false, out);
    if (out.kind == FrameKind::kBad) {
      return;
    }
  }
  out.kind = out.family == Family::kIpv4 ? FrameKind::kFragment4 : FrameKind::kFragment6;
}

/// Source: RFC 1812 5.3.7 (martian addresses), RFC 1122 3.2.1.3.
bool is_martian4(const std::uint8_t* ip) noexcept {
  const std::uint32_t src = load_be32(ip + ipv4::kSrc);
  const std::uint32_t dst = load_be32(ip + ipv4::kDst);
  constexpr std::uint32_t kBroadcast = 0xffffffff;
  const bool to_group = (dst >> 28) == 0xe || dst == kBroadcast;
  return (src >> 24) == 127 || (src >> 28) == 0xe || src == kBroadcast || (dst >> 24) == 127 ||
         ((src >> 24) == 0 && !to_group);  // a host without address may ask a group (DHCP)
}

/// Source: RFC 4291 2.5.2, 2.5.3, 2.7; mapped addresses never belong on a wire.
bool is_martian6(const std::uint8_t* ip) noexcept {
  const IpAddress src(Ipv6Address::load(ip + ipv6::kSrc));
  const IpAddress dst(Ipv6Address::load(ip + ipv6::kDst));
  const auto mapped = [](const IpAddress& a) {
    return load_raw64(a.data()) == 0 && load_be32(a.data() + 8) == 0x0000ffff;
  };
  return src.is_loopback() || src.is_multicast() || dst.is_loopback() || mapped(src) ||
         mapped(dst) || (src.is_unspecified() && !dst.is_multicast());
}

/// Loose or strict source route: the packet asks for a path around our decision (RFC 7126 4.3).
bool has_source_route(const std::uint8_t* ip, std::size_t header_length) noexcept {
  constexpr std::uint8_t kEnd = 0;
  constexpr std::uint8_t kNoOperation = 1;
  constexpr std::uint8_t kLooseRoute = 131;
  constexpr std::uint8_t kStrictRoute = 137;
  std::size_t at = ipv4::kHeaderLength;
  while (at < header_length && ip[at] != kEnd) {
    if (ip[at] == kLooseRoute || ip[at] == kStrictRoute) {
      return true;
    }
    const std::size_t left = header_length - at;
    const std::size_t step = ip[at] == kNoOperation ? 1 : left >= 2 ? ip[at + 1] : 0;
    if (step == 0) {
      return false;  // malformed options are the receiver's business
    }
    at += step;
  }
  return false;
}

/// Length and checksum of the header. @return kNone when it may be read.
ParseError check_ipv4(const Reader& in, const std::uint8_t* ip) noexcept {
  const std::uint32_t readable = in.contiguous - kEthernetLength;
  if (readable < ipv4::kHeaderLength) {
    return ParseError::kTruncatedIp;
  }
  if ((ip[0] >> 4) != 4) {
    return ParseError::kBadIpVersion;
  }
  const std::size_t header_length = (ip[0] & 15u) * 4u;
  const std::uint16_t ip_length = load_be16(ip + ipv4::kTotalLength);
  if (header_length < ipv4::kHeaderLength || header_length > readable ||
      ip_length < header_length) {
    return ParseError::kTruncatedIp;
  }
  if (fold(sum_bytes(ip, header_length)) != 0xffff) {
    return ParseError::kBadIpChecksum;
  }
  if (kEthernetLength + std::uint32_t{ip_length} > in.total) {
    return ParseError::kTruncatedFrame;
  }
  if (is_martian4(ip)) {
    return ParseError::kMartian;
  }
  return has_source_route(ip, header_length) ? ParseError::kForbiddenHeader : ParseError::kNone;
}

void parse_ipv4(const Reader& in, ParsedFrame& out) noexcept {
  const std::uint8_t* ip = in.data + kEthernetLength;
  if (const ParseError error = check_ipv4(in, ip); error != ParseError::kNone) {
    return bad(out, error);
  }
  const std::uint32_t header_length = (ip[0] & 15u) * 4u;
  out.ip_length = load_be16(ip + ipv4::kTotalLength);
  out.l4_offset = static_cast<std::uint16_t>(kEthernetLength + header_length);
  out.protocol = ip[ipv4::kProtocol];
  out.hop_limit = ip[ipv4::kTtl];
  set_key4(ip, out);
  const std::uint16_t fragment = load_be16(ip + ipv4::kFragment);
  if ((fragment & (ipv4::kMoreFragments | ipv4::kOffsetMask)) == 0) {
    return parse_l4(in, out);
  }
  const std::uint32_t offset = (fragment & ipv4::kOffsetMask) * 8u;
  parse_fragment(in, offset, offset + out.ip_length, out);
}

/// @return kNone when the fixed header may be read.
ParseError check_ipv6(const Reader& in, const std::uint8_t* ip) noexcept {
  if (in.contiguous - kEthernetLength < ipv6::kHeaderLength) {
    return ParseError::kTruncatedIp;
  }
  if ((ip[0] >> 4) != 6) {
    return ParseError::kBadIpVersion;
  }
  const std::uint32_t ip_length = load_be16(ip + ipv6::kPayloadLength) + 40u;
  if (ip_length > 0xffff) {
    return ParseError::kTruncatedIp;
  }
  if (kEthernetLength + ip_length > in.total) {
    return ParseError::kTruncatedFrame;
  }
  return is_martian6(ip) ? ParseError::kMartian : ParseError::kNone;
}

void parse_ipv6(const Reader& in, ParsedFrame& out) noexcept {
  const std::uint8_t* ip = in.data + kEthernetLength;
  if (const ParseError error = check_ipv6(in, ip); error != ParseError::kNone) {
    return bad(out, error);
  }
  out.ip_length = static_cast<std::uint16_t>(load_be16(ip + ipv6::kPayloadLength) + 40u);
  const std::uint32_t packet_end = kEthernetLength + std::uint32_t{out.ip_length};
  const Ipv6Chain chain =
      walk_ipv6_chain(in.data, kEthernetLength + ipv6::kHeaderLength,
                      std::min(packet_end, in.contiguous), ip[ipv6::kNextHeader]);
  if (chain.error != ParseError::kNone) {
    return bad(out, chain.error);
  }
  out.l4_offset = static_cast<std::uint16_t>(chain.l4_offset);
  out.protocol = chain.protocol;
  out.hop_limit = ip[ipv6::kHopLimit];
  set_key6(ip, out);
  if (chain.fragment) {
    const std::uint32_t offset = load_be16(in.data + chain.fragment_offset + 2) & 0xfff8u;
    const std::uint32_t begin = chain.fragment_offset + ipv6::kFragmentHeaderLength;
    return parse_fragment(in, offset, offset + packet_end - begin, out);
  }
  if (chain.opaque) {
    out.kind = FrameKind::kOtherIp;  // its checksum covers another destination than the header's
    return;
  }
  parse_l4(in, out);
}

void reset(const std::uint8_t* data, ParsedFrame& out) noexcept {
  out.key6 = FlowKey6{};
  out.l3_offset = kEthernetLength;
  out.l4_offset = 0;
  out.ip_length = 0;
  out.error = ParseError::kNone;
  out.protocol = 0;
  out.tcp_flags = 0;
  out.hop_limit = 0;
  out.multicast = (data[0] & 1) != 0;
  out.family = Family::kIpv4;
}

}  // namespace

void parse_frame(const std::uint8_t* data, std::uint32_t contiguous, std::uint32_t total,
                 ParsedFrame& out) noexcept {
  if (parse_plain(data, contiguous, total, out)) {
    return;
  }
  parse_frame_general(data, contiguous, total, out);
}

void parse_frame_general(const std::uint8_t* data, std::uint32_t contiguous, std::uint32_t total,
                         ParsedFrame& out) noexcept {
  if (contiguous < kEthernetLength) {
    out = ParsedFrame();
    return bad(out, ParseError::kTruncatedEthernet);
  }
  reset(data, out);
  const Reader in{data, contiguous, total};
  switch (load_be16(data + kEthernetTypeOffset)) {
    case kEtherTypeIpv4:
      return parse_ipv4(in, out);
    case kEtherTypeIpv6:
      return parse_ipv6(in, out);
    case kEtherTypeArp:
      if (contiguous < kEthernetLength + kArpLength) {
        return bad(out, ParseError::kTruncatedEthernet);
      }
      out.kind = FrameKind::kArp;
      return;
    default:
      out.kind = FrameKind::kOtherEther;
  }
}

FragmentInfo fragment_info(const std::uint8_t* data, const ParsedFrame& frame) noexcept {
  FragmentInfo info;
  info.src = frame.src();
  info.dst = frame.dst();
  info.has_ports = frame.l4_offset != 0 && is_flow_protocol(frame.protocol);
  const std::uint8_t* ip = data + frame.l3_offset;
  if (frame.family == Family::kIpv4) {
    const std::uint16_t field = load_be16(ip + ipv4::kFragment);
    info.id = load_be16(ip + ipv4::kId);
    info.protocol = frame.protocol;
    info.more = (field & ipv4::kMoreFragments) != 0;
    info.offset = static_cast<std::uint16_t>((field & ipv4::kOffsetMask) * 8u);
    info.length = static_cast<std::uint16_t>(frame.ip_length - (ip[0] & 15u) * 4u);
    return info;
  }
  const std::uint32_t end = std::uint32_t{frame.l3_offset} + frame.ip_length;
  const Ipv6Chain chain =
      walk_ipv6_chain(data, static_cast<std::uint32_t>(frame.l3_offset + ipv6::kHeaderLength), end,
                      ip[ipv6::kNextHeader]);
  const std::uint8_t* header = data + chain.fragment_offset;
  const std::uint16_t field = load_be16(header + 2);
  info.id = load_be32(header + 4);
  info.protocol = kIpProtoFragment;
  info.more = (field & 1) != 0;
  info.offset = field & 0xfff8;
  info.length =
      static_cast<std::uint16_t>(end - chain.fragment_offset - ipv6::kFragmentHeaderLength);
  return info;
}

}  // namespace sluice::core
