#pragma once

// Translation of one packet in place.
//
// Theory of operation: a flow's translation never changes, so what it does to the checksums never
// changes either. `Translation` holds the new addresses and ports of one direction and the two
// deltas; applying it is a dozen stores and two 16-bit additions, whatever the packet's size and
// however many segments it has. A checksum that was wrong stays wrong: damage on the way remains
// visible to the receiver.
//
// Worked example: client C:1000 asks V:80, backend B:8080, client address kept.
//   forward: between({C,V,1000,80}, {C,B,1000,8080}), reply: between({B,C,8080,1000},
//   {V,C,80,1000}); the reply's deltas are the forward ones negated.

#include <cstdint>

#include "dataplane/core/net/checksum.h"
#include "dataplane/core/net/crc32c.h"
#include "dataplane/core/net/headers.h"
#include "dataplane/core/net/parse.h"

namespace sluice::core {

/// New addresses and ports of one direction, and what they do to the checksums. F: Ipv4 or Ipv6.
template <class F>
struct Translation {
  typename F::Address src;
  typename F::Address dst;
  Be16 sport;
  Be16 dport;
  ChecksumDelta l3;  ///< IPv4 header checksum; unused for IPv6
  ChecksumDelta l4;  ///< TCP, UDP: pseudo-header and ports

  /// The translation that makes `after` of `before`, deltas computed. Cost: about 20 cycles (IPv4).
  [[nodiscard]] static Translation between(const typename F::Key& before,
                                           const typename F::Key& after) noexcept {
    Translation t{after.src, after.dst, after.sport, after.dport, {}, {}};
    t.l3.replace(before.src, after.src);
    t.l3.replace(before.dst, after.dst);
    t.l4 = t.l3;
    t.l4.replace(before.sport, after.sport);
    t.l4.replace(before.dport, after.dport);
    return t;
  }
};

/// The key of a parsed frame of family F.
template <class F>
[[nodiscard]] const typename F::Key& key_of(const ParsedFrame& frame) noexcept {
  if constexpr (F::kFamily == Family::kIpv4) {
    return frame.key4;
  } else {
    return frame.key6;
  }
}

/// Takes one from TTL or hop limit. Precondition: it is above 1; else the packet must not be
/// forwarded (RFC 1812 5.3.1: time exceeded).
inline void decrement_ttl4(std::uint8_t* ip, ChecksumDelta l3 = {}) noexcept {
  // Taking one from the TTL is adding ~0x0100 to the header's sum; up to two carries.
  constexpr std::uint16_t kOneHop = static_cast<std::uint16_t>(~Be16::from_host(0x0100).raw());
  std::uint32_t sum = static_cast<std::uint16_t>(~load_raw16(ip + ipv4::kChecksum));
  sum += std::uint32_t{l3.raw()} + kOneHop;
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  store_raw16(ip + ipv4::kChecksum, static_cast<std::uint16_t>(~sum));
  --ip[ipv4::kTtl];
}
inline void decrement_hop_limit6(std::uint8_t* ip) noexcept {
  --ip[ipv6::kHopLimit];
}

namespace rewrite_detail {

/// Writes addresses and takes a hop.
inline void write_l3(std::uint8_t* ip, const Translation<Ipv4>& to) noexcept {
  to.src.store(ip + ipv4::kSrc);
  to.dst.store(ip + ipv4::kDst);
  decrement_ttl4(ip, to.l3);
}
inline void write_l3(std::uint8_t* ip, const Translation<Ipv6>& to) noexcept {
  to.src.store(ip + ipv6::kSrc);
  to.dst.store(ip + ipv6::kDst);
  decrement_hop_limit6(ip);
}

/// Corrects the CRC of an SCTP packet of `l4_length` bytes whose ports word becomes `ports`.
inline void correct_sctp(std::uint8_t* l4, std::uint32_t ports, std::uint32_t l4_length) noexcept {
  const std::uint32_t changed = load_raw32(l4) ^ ports;
  if (changed != 0) {
    const std::uint32_t crc =
        load_raw32(l4 + kSctpCrcOffset) ^ crc32c_change(changed, l4_length - 4);
    std::memcpy(l4 + kSctpCrcOffset, &crc, sizeof crc);
  }
}

inline void correct_tcp_udp(std::uint8_t* l4, std::uint8_t protocol, ChecksumDelta delta) noexcept {
  if (protocol == kIpProtoTcp) [[likely]] {
    store_raw16(l4 + 16, delta.apply(load_raw16(l4 + 16)));
  } else {
    store_raw16(l4 + 6, delta.apply_udp(load_raw16(l4 + 6)));
  }
}

inline std::uint32_t ports_word(Be16 sport, Be16 dport) noexcept {
  std::uint8_t bytes[4];
  sport.store(bytes);
  dport.store(bytes + 2);
  return load_raw32(bytes);
}

}  // namespace rewrite_detail

/// Translates a flow's packet (kFlow4 or kFlow6) and takes one hop.
/// Precondition: hop limit above 1. Cost: about 10 cycles; SCTP with new ports a few hundred.
/// Thread: owner of the frame. Errors: none.
template <class F>
inline void translate(std::uint8_t* data, const ParsedFrame& frame,
                      const Translation<F>& to) noexcept {
  std::uint8_t* l4 = data + frame.l4_offset;
  const std::uint32_t ports = rewrite_detail::ports_word(to.sport, to.dport);
  if (frame.protocol == kIpProtoTcp || frame.protocol == kIpProtoUdp) [[likely]] {
    rewrite_detail::correct_tcp_udp(l4, frame.protocol, to.l4);
  } else {
    rewrite_detail::correct_sctp(l4, ports, frame.l4_length());
  }
  std::memcpy(l4, &ports, sizeof ports);
  rewrite_detail::write_l3(data + frame.l3_offset, to);
}

/// Translates a fragment: a first one as a whole packet, a later one by its addresses alone.
/// @return false and changes nothing: a first one of another protocol; or a first fragment of SCTP
/// whose ports
///         would change, as its CRC covers bytes that are not here, and their number is not known.
template <class F>
[[nodiscard]] bool translate_fragment(std::uint8_t* data, const ParsedFrame& frame,
                                      const Translation<F>& to) noexcept {
  if (frame.l4_offset == 0) {
    rewrite_detail::write_l3(data + frame.l3_offset, to);
    return true;
  }
  const auto& key = key_of<F>(frame);
  const bool sctp = frame.protocol == kIpProtoSctp;
  if ((sctp && (key.sport != to.sport || key.dport != to.dport)) ||
      (!sctp && frame.protocol != kIpProtoTcp && frame.protocol != kIpProtoUdp)) {
    return false;
  }
  translate(data, frame, to);
  return true;
}

}  // namespace sluice::core
