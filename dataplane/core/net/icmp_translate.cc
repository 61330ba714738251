#include <algorithm>

#include "dataplane/core/net/icmp.h"

namespace sluice::core {

namespace {

/// The part of the quote that may change: from the quoted IP header to the L4 checksum.
struct Quote {
  std::uint8_t* ip;
  std::uint8_t* l4;
  std::uint32_t l4_readable;  ///< quoted bytes of L4, at least 8
};

/// Corrects the quoted L4 checksum if it is among the quoted bytes, and writes the ports.
template <class F>
void rewrite_quoted_l4(const Quote& quote, const ParsedFrame& inner,
                       const Translation<F>& to) noexcept {
  const std::uint32_t ports = rewrite_detail::ports_word(to.sport, to.dport);
  switch (inner.protocol) {
    case kIpProtoUdp:
      rewrite_detail::correct_tcp_udp(quote.l4, inner.protocol, to.l4);
      break;
    case kIpProtoTcp:
      if (quote.l4_readable >= 18) {
        rewrite_detail::correct_tcp_udp(quote.l4, inner.protocol, to.l4);
      }
      break;
    default: {
      // The CRC covers the packet as it was, of which the quoted IP header tells the length.
      const std::uint32_t end = std::uint32_t{inner.l3_offset} + inner.ip_length;
      if (quote.l4_readable >= kSctpHeaderLength && end >= inner.l4_offset + 12u) {
        rewrite_detail::correct_sctp(quote.l4, ports, end - inner.l4_offset);
      }
    }
  }
  std::memcpy(quote.l4, &ports, sizeof ports);
}

void rewrite_quoted_l3(std::uint8_t* ip, const Translation<Ipv4>& to) noexcept {
  to.src.store(ip + ipv4::kSrc);
  to.dst.store(ip + ipv4::kDst);
  store_raw16(ip + ipv4::kChecksum, to.l3.apply(load_raw16(ip + ipv4::kChecksum)));
}

void rewrite_quoted_l3(std::uint8_t* ip, const Translation<Ipv6>& to) noexcept {
  to.src.store(ip + ipv6::kSrc);
  to.dst.store(ip + ipv6::kDst);
}

/// Outer header; `icmp` gains what the pseudo-header's change does to ICMPv6.
void rewrite_outer(std::uint8_t* ip, const IcmpTranslation<Ipv4>& to, ChecksumDelta&) noexcept {
  ChecksumDelta l3;
  l3.replace(Be32::load(ip + ipv4::kSrc), to.outer_src);
  l3.replace(Be32::load(ip + ipv4::kDst), to.outer_dst);
  to.outer_src.store(ip + ipv4::kSrc);
  to.outer_dst.store(ip + ipv4::kDst);
  decrement_ttl4(ip, l3);
}

void rewrite_outer(std::uint8_t* ip, const IcmpTranslation<Ipv6>& to,
                   ChecksumDelta& icmp) noexcept {
  icmp.replace(Ipv6Address::load(ip + ipv6::kSrc), to.outer_src);
  icmp.replace(Ipv6Address::load(ip + ipv6::kDst), to.outer_dst);
  to.outer_src.store(ip + ipv6::kSrc);
  to.outer_dst.store(ip + ipv6::kDst);
  decrement_hop_limit6(ip);
}

template <class F>
void translate_error(std::uint8_t* data, std::uint32_t contiguous, const ParsedFrame& frame,
                     const QuotedPacket& quoted, const IcmpTranslation<F>& to) noexcept {
  constexpr std::uint32_t kL4Touched = 20;  // ports and checksum of TCP, UDP and SCTP lie within
  const std::uint32_t end = std::min(contiguous, std::uint32_t{frame.l3_offset} + frame.ip_length);
  const Quote quote{data + quoted.inner_l3_offset, data + quoted.inner.l4_offset,
                    end - quoted.inner.l4_offset};
  const std::uint32_t touched =
      quoted.inner.l4_offset - quoted.inner_l3_offset + std::min(quote.l4_readable, kL4Touched);
  // The error's checksum covers the quote: what the quote's sum loses and gains is its delta. An
  // odd end is padded alike in both sums and never changes.
  const std::uint16_t before = fold(sum_bytes(quote.ip, touched));
  const auto inner = Translation<F>::between(key_of<F>(quoted.inner), to.inner);
  rewrite_quoted_l4<F>(quote, quoted.inner, inner);
  rewrite_quoted_l3(quote.ip, inner);
  ChecksumDelta icmp;
  icmp.replace(Be16::from_raw(before), Be16::from_raw(fold(sum_bytes(quote.ip, touched))));
  rewrite_outer(data + frame.l3_offset, to, icmp);
  std::uint8_t* field = data + frame.l4_offset + 2;
  store_raw16(field, icmp.apply(load_raw16(field)));
}

}  // namespace

void translate_icmp_error(std::uint8_t* data, std::uint32_t contiguous, const ParsedFrame& frame,
                          const QuotedPacket& quoted, const IcmpTranslation<Ipv4>& to) noexcept {
  translate_error<Ipv4>(data, contiguous, frame, quoted, to);
}

void translate_icmp_error(std::uint8_t* data, std::uint32_t contiguous, const ParsedFrame& frame,
                          const QuotedPacket& quoted, const IcmpTranslation<Ipv6>& to) noexcept {
  translate_error<Ipv6>(data, contiguous, frame, quoted, to);
}

}  // namespace sluice::core
