#include <algorithm>

#include "dataplane/core/net/checksum.h"
#include "dataplane/core/net/headers.h"
#include "dataplane/core/net/icmp.h"
#include "dataplane/core/net/write_headers.h"

namespace sluice::core {

namespace {

/// Type and code per kind.
struct TypeCode {
  std::uint8_t type;
  std::uint8_t code;
};

TypeCode type_code(IcmpErrorKind kind, bool v4) noexcept {
  switch (kind) {
    case IcmpErrorKind::kPortUnreachable:
      return v4 ? TypeCode{kIcmpUnreachable, 3} : TypeCode{kIcmpv6Unreachable, 4};
    case IcmpErrorKind::kTooBig:
      return v4 ? TypeCode{kIcmpUnreachable, 4} : TypeCode{kIcmpv6TooBig, 0};
    case IcmpErrorKind::kHostUnreachable:
      return v4 ? TypeCode{kIcmpUnreachable, 1} : TypeCode{kIcmpv6Unreachable, 3};
    case IcmpErrorKind::kTimeExceeded:
      break;
  }
  return v4 ? TypeCode{kIcmpTimeExceeded, 0} : TypeCode{kIcmpv6TimeExceeded, 0};
}

bool is_group4(Ipv4Address address) noexcept {
  return (address.host() >> 28) >= 0xe;  // multicast, class E, 255.255.255.255
}

/// True when both ends of the packet are single hosts.
bool between_hosts(const ParsedFrame& frame) noexcept {
  if (frame.family == Family::kIpv4) {
    return !is_group4(frame.key4.src) && !is_group4(frame.key4.dst) &&
           (frame.key4.src.host() >> 24) != 0 && (frame.key4.dst.host() >> 24) != 0;
  }
  return !frame.src().is_multicast() && !frame.src().is_unspecified() &&
         !frame.dst().is_multicast() && !frame.dst().is_unspecified();
}

/// Writes the header of the error (8 bytes) without its checksum.
void write_icmp_header(std::uint8_t* icmp, const IcmpErrorRequest& request) noexcept {
  const bool v4 = request.source.is_v4();
  const TypeCode what = type_code(request.kind, v4);
  std::memset(icmp, 0, kIcmpHeaderLength);
  icmp[0] = what.type;
  icmp[1] = what.code;
  if (request.kind == IcmpErrorKind::kTooBig) {
    // RFC 1191 4 has 16 bits behind 16 unused ones, RFC 4443 3.2 has 32.
    store_be32(icmp + 4, v4 ? std::min<std::uint32_t>(request.mtu, 0xffff) : request.mtu);
  }
}

}  // namespace

bool is_icmp_error(const std::uint8_t* data, const ParsedFrame& frame) noexcept {
  if (frame.kind == FrameKind::kIcmp4) {
    const std::uint8_t type = data[frame.l4_offset];
    return type == kIcmpUnreachable || type == kIcmpSourceQuench || type == kIcmpRedirect ||
           type == kIcmpTimeExceeded || type == kIcmpParameterProblem;
  }
  return frame.kind == FrameKind::kIcmp6 && data[frame.l4_offset] < kIcmpv6EchoRequest;
}

bool may_answer_with_error(const std::uint8_t* data, const ParsedFrame& frame) noexcept {
  switch (frame.kind) {
    case FrameKind::kFlow4:
    case FrameKind::kFlow6:
    case FrameKind::kOtherIp:
      break;
    case FrameKind::kIcmp4:
    case FrameKind::kIcmp6:
      if (is_icmp_error(data, frame)) {
        return false;
      }
      break;
    case FrameKind::kFragment4:
    case FrameKind::kFragment6:
      // A first fragment of ICMP may be one of an error; its type is not worth a special case.
      if (frame.l4_offset == 0 || frame.protocol == kIpProtoIcmp ||
          frame.protocol == kIpProtoIcmpv6) {
        return false;
      }
      break;
    default:
      return false;
  }
  return !frame.multicast && between_hosts(frame);
}

std::uint32_t build_icmp_error(const std::uint8_t* cause, std::uint32_t contiguous,
                               const ParsedFrame& frame, const IcmpErrorRequest& request,
                               std::uint8_t* out, std::uint32_t capacity) noexcept {
  constexpr std::uint32_t kLimit4 = 576;
  constexpr std::uint32_t kLimit6 = 1280;
  constexpr std::uint32_t kLeastL4 = 8;
  constexpr std::uint8_t kInternetworkControl = 0xc0;  // RFC 1812 4.3.2.5
  const bool v4 = frame.family == Family::kIpv4;
  const std::uint32_t headers =
      kEthernetLength + ip_header_length(frame.family) + kIcmpHeaderLength;
  const std::uint32_t readable =
      std::min<std::uint32_t>(frame.ip_length, contiguous - frame.l3_offset);
  const std::uint32_t least =
      std::min<std::uint32_t>(readable, frame.l4_offset - frame.l3_offset + kLeastL4);
  if (capacity < headers + least) {
    return 0;
  }
  const std::uint32_t limit = std::min(capacity, kEthernetLength + (v4 ? kLimit4 : kLimit6));
  const std::uint32_t quoted =
      std::max(least, std::min(readable, limit > headers ? limit - headers : 0));
  if (headers + quoted > kMaxIcmpErrorFrame) {
    return 0;  // a header chain that no error can quote
  }
  const MacAddress eth_dst = MacAddress::load(cause + 6);
  const MacAddress eth_src = MacAddress::load(cause);
  const NewIpHeader ip{request.source, frame.src(), v4 ? kIpProtoIcmp : kIpProtoIcmpv6,
                       kOwnHopLimit, kInternetworkControl};
  std::memmove(out + headers, cause + frame.l3_offset, quoted);  // before `cause` is overwritten
  const std::uint32_t icmp_length = kIcmpHeaderLength + quoted;
  std::uint8_t* icmp = out + write_frame_headers(out, eth_dst, eth_src, ip, icmp_length);
  write_icmp_header(icmp, request);
  write_l4_checksum(icmp, ip, icmp_length);
  return headers + quoted;
}

bool make_echo_reply(std::uint8_t* data, const ParsedFrame& frame) noexcept {
  const bool v4 = frame.kind == FrameKind::kIcmp4;
  const std::uint8_t request = v4 ? kIcmpEchoRequest : kIcmpv6EchoRequest;
  std::uint8_t* icmp = data + frame.l4_offset;
  if ((!v4 && frame.kind != FrameKind::kIcmp6) || icmp[0] != request || icmp[1] != 0 ||
      frame.multicast || !between_hosts(frame)) {
    return false;
  }
  const MacAddress peer = MacAddress::load(data + 6);
  MacAddress::load(data).store(data + 6);
  peer.store(data);
  std::uint8_t* ip = data + frame.l3_offset;
  if (v4) {
    frame.key4.dst.store(ip + ipv4::kSrc);
    frame.key4.src.store(ip + ipv4::kDst);
    ip[ipv4::kTtl] = kOwnHopLimit;
    store_raw16(ip + ipv4::kChecksum, ipv4_header_checksum(ip, (ip[0] & 15u) * 4u));
  } else {
    frame.key6.dst.store(ip + ipv6::kSrc);
    frame.key6.src.store(ip + ipv6::kDst);
    ip[ipv6::kHopLimit] = kOwnHopLimit;
  }
  ChecksumDelta delta;
  const Be16 before = Be16::load(icmp);
  icmp[0] = v4 ? kIcmpEchoReply : kIcmpv6EchoReply;
  delta.replace(before, Be16::load(icmp));
  store_raw16(icmp + 2, delta.apply(load_raw16(icmp + 2)));
  return true;
}

}  // namespace sluice::core
