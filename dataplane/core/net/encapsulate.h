#pragma once

// IP in IP: an outer header in front of a packet, and errors about packets with one.
//
// Theory of operation: the caller has made room for the outer header in front of the Ethernet
// header's place and knows all of it. The packet itself changes only by the hop that entering a
// tunnel is (RFC 2003 3.1, RFC 2473 3.1). The outer header copies the traffic class (RFC 6040, so
// congestion marks survive) and says "don't fragment" with identification 0 (RFC 6864), unless the
// packet is an IPv6 one that IPv6 promises to carry whole (RFC 4213 3.2.2).
//
// Worked example: C > V, 1000 bytes, to backend B from our address S over IPv4:
//   Ethernet | 45 .. 1020 .. DF .. 64, 4 .. S > B | C > V ...

#include <cstdint>

#include "dataplane/core/net/checksum.h"
#include "dataplane/core/net/headers.h"
#include "dataplane/core/net/icmp.h"
#include "dataplane/core/net/parse.h"
#include "dataplane/core/net/rewrite.h"
#include "dataplane/core/net/write_headers.h"

namespace sluice::core {

inline constexpr std::uint8_t kIpProtoIpv4 = 4;   ///< IPv4 inside
inline constexpr std::uint8_t kIpProtoIpv6 = 41;  ///< IPv6 inside

[[nodiscard]] constexpr std::uint32_t tunnel_overhead(Family outer) noexcept {
  return outer == Family::kIpv4 ? ipv4::kHeaderLength : ipv6::kHeaderLength;
}

/// Smallest MTU that may be told about a packet of this family: RFC 791 says 68, hosts do not go
/// below 552 (RFC 1191 sets no floor); RFC 8200 5.
inline constexpr std::uint16_t kLeastMtu4 = 552;
inline constexpr std::uint16_t kLeastMtu6 = 1280;

/// What a tunnel carries: the longest packet of family `inner` on a path of `mtu` bytes.
[[nodiscard]] constexpr std::uint16_t tunnel_mtu(std::uint16_t mtu, Family inner,
                                                 Family outer) noexcept {
  const std::uint32_t overhead = tunnel_overhead(outer);
  const auto carried = static_cast<std::uint16_t>(mtu > overhead ? mtu - overhead : 0);
  return inner == Family::kIpv6 && carried < kLeastMtu6 ? kLeastMtu6 : carried;
}

/// What the outer header says beside lengths. F: Ipv4 or Ipv6, the outer family.
template <class F>
struct OuterHeader {
  typename F::Address src;
  typename F::Address dst;
  std::uint32_t label = 0;     ///< IPv6: flow label, low 20 bits (RFC 6438)
  bool dont_fragment = true;   ///< IPv4
  std::uint16_t id = 0;        ///< IPv4: identification where fragmenting is allowed
};

namespace encapsulate_detail {

/// TOS or traffic class of the packet at `ip`.
inline std::uint8_t traffic_class(const std::uint8_t* ip, Family family) noexcept {
  return family == Family::kIpv4
             ? ip[ipv4::kTos]
             : static_cast<std::uint8_t>(load_be16(ip) >> 4);
}

inline void write_outer(std::uint8_t* ip, const OuterHeader<Ipv4>& outer, std::uint8_t protocol,
                        std::uint8_t tos, std::uint32_t inner_length) noexcept {
  const std::uint32_t first = 0x45000000u | std::uint32_t{tos} << 16 |
                              (ipv4::kHeaderLength + inner_length);
  const std::uint32_t second =
      std::uint32_t{outer.id} << 16 | (outer.dont_fragment ? ipv4::kDontFragment : 0u);
  const std::uint32_t third = std::uint32_t{kOwnHopLimit} << 24 | std::uint32_t{protocol} << 16;
  const std::uint32_t src = outer.src.host();
  const std::uint32_t dst = outer.dst.host();
  std::uint64_t sum = std::uint64_t{first} + second + third + src + dst;
  sum = (sum & 0xffffffff) + (sum >> 32);
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  store_be32(ip, first);
  store_be32(ip + 4, second);
  store_be32(ip + 8, third | static_cast<std::uint16_t>(~sum));
  outer.src.store(ip + ipv4::kSrc);
  outer.dst.store(ip + ipv4::kDst);
}

inline void write_outer(std::uint8_t* ip, const OuterHeader<Ipv6>& outer, std::uint8_t protocol,
                        std::uint8_t traffic_class, std::uint32_t inner_length) noexcept {
  store_be32(ip, 0x60000000u | std::uint32_t{traffic_class} << 20 | (outer.label & 0xfffff));
  store_be32(ip + 4, inner_length << 16 | std::uint32_t{protocol} << 8 | kOwnHopLimit);
  outer.src.store(ip + ipv6::kSrc);
  outer.dst.store(ip + ipv6::kDst);
}

}  // namespace encapsulate_detail

/// Writes EtherType and outer header of a frame whose packet of family Inner and `inner_length`
/// bytes lies at data + 14 + tunnel_overhead(Outer), and takes that packet's hop. The Ethernet
/// addresses are not written.
/// Precondition: hop limit above 1, inner_length + overhead at most 65535.
/// Thread: owner of the frame. Errors: none.
template <class Inner, class Outer>
inline void write_tunnel_headers(std::uint8_t* data, std::uint32_t inner_length,
                                 const OuterHeader<Outer>& outer) noexcept {
  constexpr bool kInner4 = Inner::kFamily == Family::kIpv4;
  std::uint8_t* ip = data + kEthernetLength;
  std::uint8_t* inner = ip + tunnel_overhead(Outer::kFamily);
  if constexpr (kInner4) {
    decrement_ttl4(inner);
  } else {
    decrement_hop_limit6(inner);
  }
  store_be16(data + kEthernetTypeOffset,
             Outer::kFamily == Family::kIpv4 ? kEtherTypeIpv4 : kEtherTypeIpv6);
  encapsulate_detail::write_outer(ip, outer, kInner4 ? kIpProtoIpv4 : kIpProtoIpv6,
                                  encapsulate_detail::traffic_class(inner, Inner::kFamily),
                                  inner_length);
}

/// What an ICMP error says about a packet that went through a tunnel.
struct TunnelError {
  IpAddress outer_src;     ///< as quoted: ours
  IpAddress outer_dst;     ///< the backend
  IcmpErrorKind kind = IcmpErrorKind::kHostUnreachable;  ///< kTooBig, or kHostUnreachable for all the rest
  std::uint16_t mtu = 0;   ///< kTooBig: of the path to the backend, as far as it is said or guessed
  bool has_flow = false;   ///< `inner` is a flow with its ports
  ParsedFrame inner;       ///< the quoted inner packet; offsets from the start of the frame
};

/// @return true and fills `out` when `frame` is an ICMP or ICMPv6 error that quotes an IP packet
/// with another one inside. A router that quotes 8 bytes behind the header leaves has_flow false.
/// Checksums are not verified. Thread: any.
[[nodiscard]] bool parse_tunnel_error(const std::uint8_t* data, std::uint32_t contiguous,
                                      const ParsedFrame& frame, TunnelError& out) noexcept;

}  // namespace sluice::core
