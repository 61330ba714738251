#include "test/fuzz/net_targets.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "dataplane/core/net/arp_nd.h"
#include "dataplane/core/net/encapsulate.h"
#include "dataplane/core/net/icmp.h"
#include "dataplane/core/net/parse.h"
#include "dataplane/core/net/parse_fast.h"
#include "dataplane/core/net/partial_checksum.h"
#include "dataplane/core/net/reject.h"
#include "dataplane/core/net/rewrite.h"

namespace sluice::fuzz {

namespace {

using namespace core;  // every name here is of the code under test

void require(bool holds, const char* what) {
  if (!holds) {
    std::fprintf(stderr, "fuzz: %s\n", what);
    std::abort();
  }
}

/// A copy of the exact size on the heap, so that the sanitizer sees every byte read too many. The
/// first input byte says how much of the frame lies in later segments.
struct Frame {
  Frame(const std::uint8_t* data, std::size_t size) {
    total = static_cast<std::uint32_t>(size == 0 ? 0 : std::min<std::size_t>(size - 1, 70000));
    const std::uint32_t cut = size == 0 || data[0] < 128 ? 0 : data[0] - 128u;
    contiguous = total - std::min(cut, total);
    bytes.assign(data + (size == 0 ? 0 : 1), data + (size == 0 ? 0 : 1) + contiguous);
    bytes.shrink_to_fit();
    parse_frame(bytes.data(), contiguous, total, parsed);
  }
  std::vector<std::uint8_t> bytes;
  std::uint32_t contiguous = 0;
  std::uint32_t total = 0;
  ParsedFrame parsed;
};

bool is_flow(const ParsedFrame& frame) {
  return frame.kind == FrameKind::kFlow4 || frame.kind == FrameKind::kFlow6;
}

bool is_fragment(const ParsedFrame& frame) {
  return frame.kind == FrameKind::kFragment4 || frame.kind == FrameKind::kFragment6;
}

bool is_ip(const ParsedFrame& frame) {
  return frame.kind != FrameKind::kBad && frame.kind != FrameKind::kArp &&
         frame.kind != FrameKind::kOtherEther;
}

bool same_key(const ParsedFrame& a, const ParsedFrame& b) {
  return a.family == b.family && (a.family == Family::kIpv4 ? a.key4 == b.key4 : a.key6 == b.key6);
}

bool same(const ParsedFrame& a, const ParsedFrame& b) {
  return a.kind == b.kind && a.error == b.error && a.l3_offset == b.l3_offset &&
         a.l4_offset == b.l4_offset && a.ip_length == b.ip_length && a.protocol == b.protocol &&
         a.tcp_flags == b.tcp_flags && a.hop_limit == b.hop_limit && a.multicast == b.multicast &&
         same_key(a, b);
}

/// Some other tuple; deterministic.
template <class Key>
Key other_key(const Key& key) {
  Key to = key.reversed();
  to.sport = Be16::from_host(static_cast<std::uint16_t>(to.sport.host() + 77));
  to.dport = Be16::from_host(8080);
  return to;
}

/// Bytes that a translation there and back may leave different: the hop limit, and 0x0000 for
/// 0xffff in a checksum that was not canonical.
void require_restored(const std::vector<std::uint8_t>& before,
                      const std::vector<std::uint8_t>& after, const ParsedFrame& frame) {
  const std::size_t hop = frame.l3_offset + (frame.family == Family::kIpv4 ? 8u : 7u);
  const bool v4 = frame.family == Family::kIpv4;
  const std::size_t ip_sum = v4 ? frame.l3_offset + 10u : hop;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const bool counted = i == hop || i == ip_sum || i == ip_sum + 1;
    const bool zero = (before[i] == 0 && after[i] == 0xff) || (before[i] == 0xff && after[i] == 0);
    require(before[i] == after[i] || counted || zero, "a byte was not restored");
  }
}

template <class F>
void rewrite_and_back(Frame& frame) {
  const auto before = frame.bytes;
  const auto& key = key_of<F>(frame.parsed);
  const auto there = Translation<F>::between(key, other_key(key));
  if (is_flow(frame.parsed)) {
    translate(frame.bytes.data(), frame.parsed, there);
  } else if (!translate_fragment(frame.bytes.data(), frame.parsed, there)) {
    return;
  }
  const Translation<F> back{key.src,           key.dst, key.sport, key.dport, there.l3.negated(),
                            there.l4.negated()};
  is_flow(frame.parsed) ? translate(frame.bytes.data(), frame.parsed, back)
                        : (void)translate_fragment(frame.bytes.data(), frame.parsed, back);
  require_restored(before, frame.bytes, frame.parsed);
}

template <class F>
void translate_error_and_back(Frame& frame, const QuotedPacket& quoted) {
  const auto before = frame.bytes;
  const auto& outer = key_of<F>(frame.parsed);
  const auto& inner = key_of<F>(quoted.inner);
  const auto to = other_key(inner);
  translate_icmp_error(frame.bytes.data(), frame.contiguous, frame.parsed, quoted,
                       IcmpTranslation<F>{to.src, to.dst, to});
  QuotedPacket again;
  require(parse_icmp_error(frame.bytes.data(), frame.contiguous, frame.parsed, again),
          "a translated error is no error");
  require(key_of<F>(again.inner) == to, "the quoted tuple is not the wanted one");
  translate_icmp_error(frame.bytes.data(), frame.contiguous, frame.parsed, again,
                       IcmpTranslation<F>{outer.src, outer.dst, inner});
  require_restored(before, frame.bytes, frame.parsed);
}

template <class F>
OuterHeader<F> outer_header(std::uint8_t seed) {
  OuterHeader<F> outer;
  if constexpr (F::kFamily == Family::kIpv4) {
    outer.src = Ipv4Address::from_host(0xc0000200u | seed);
    outer.dst = Ipv4Address::from_host(0xdfffffffu - seed);
  } else {
    outer.src.bytes.fill(0x2a);
    outer.dst.bytes.fill(static_cast<std::uint8_t>(0x20 | (seed & 15)));
  }
  outer.label = seed * 0x01010101u;
  outer.dont_fragment = seed % 2 == 0;
  outer.id = seed;
  return outer;
}

/// Wraps the packet, looks at what came out, and reads an error that quotes it.
template <class Inner, class Outer>
void wrap(const Frame& frame, std::uint8_t seed) {
  const std::uint32_t length = frame.parsed.ip_length;
  constexpr std::uint32_t kOverhead = tunnel_overhead(Outer::kFamily);
  if (frame.contiguous < frame.parsed.l3_offset + length || frame.parsed.hop_limit <= 1 ||
      length + kOverhead + 100 > 65535) {
    return;
  }
  std::vector<std::uint8_t> out(kEthernetLength + kOverhead + length);
  std::copy_n(frame.bytes.begin() + frame.parsed.l3_offset, length,
              out.begin() + kEthernetLength + kOverhead);
  const auto outer = outer_header<Outer>(seed);
  write_tunnel_headers<Inner, Outer>(out.data(), length, outer);
  const auto size = static_cast<std::uint32_t>(out.size());
  ParsedFrame parsed;
  parse_frame_general(out.data(), size, size, parsed);
  require(parsed.kind == FrameKind::kOtherIp && parsed.family == Outer::kFamily,
          "a tunnel's packet does not parse");
  require(parsed.ip_length == kOverhead + length, "a tunnel's packet has another length");
  std::vector<std::uint8_t> error(kMaxIcmpErrorFrame);
  const IcmpErrorRequest request{IcmpErrorKind::kTooBig, IpAddress(outer.dst), 1400};
  error.resize(build_icmp_error(out.data(), size, parsed, request, error.data(),
                                kMaxIcmpErrorFrame));
  ParsedFrame about;
  parse_frame_general(error.data(), static_cast<std::uint32_t>(error.size()),
                      static_cast<std::uint32_t>(error.size()), about);
  TunnelError said;
  require(parse_tunnel_error(error.data(), static_cast<std::uint32_t>(error.size()), about, said),
          "an error about a tunnel is not read");
  require(said.outer_dst == IpAddress(outer.dst) && said.mtu == 1400, "another tunnel or MTU");
  require(!is_flow(frame.parsed) || !said.has_flow ||
              key_of<Inner>(said.inner) == key_of<Inner>(frame.parsed),
          "another flow than the one that was wrapped");
}

}  // namespace

void tunnel(const std::uint8_t* data, std::size_t size) {
  Frame frame(data, size);
  TunnelError said;
  if (parse_tunnel_error(frame.bytes.data(), frame.contiguous, frame.parsed, said)) {
    require(!said.has_flow || (is_flow(said.inner) && said.inner.l4_offset + 8u <= frame.contiguous),
            "quoted ports lie outside the frame");
  }
  const std::uint8_t seed = size == 0 ? std::uint8_t{0} : data[0];
  if (is_flow(frame.parsed) || is_fragment(frame.parsed)) {
    if (frame.parsed.family == Family::kIpv4) {
      wrap<Ipv4, Ipv4>(frame, seed);
      wrap<Ipv4, Ipv6>(frame, seed);
    } else {
      wrap<Ipv6, Ipv4>(frame, seed);
      wrap<Ipv6, Ipv6>(frame, seed);
    }
  }
}

void parse(const std::uint8_t* data, std::size_t size) {
  Frame frame(data, size);
  ParsedFrame fast;
  ParsedFrame general;
  parse_frame_general(frame.bytes.data(), frame.contiguous, frame.total, general);
  require(
      !parse_plain(frame.bytes.data(), frame.contiguous, frame.total, fast) || same(fast, general),
      "the short cut and the general parser differ");
  require(same(frame.parsed, general), "parse_frame and the general parser differ");
  require((general.kind == FrameKind::kBad) == (general.error != ParseError::kNone),
          "an error without kBad, or the other way round");
  require(general.l4_offset <= frame.contiguous, "L4 lies outside the frame");
  if (is_ip(general)) {
    require(general.l3_offset + std::uint32_t{general.ip_length} <= frame.total,
            "the packet is longer than the frame");
  }
  if (is_fragment(general)) {
    const FragmentInfo info = fragment_info(frame.bytes.data(), general);
    require(info.offset + std::uint32_t{info.length} <= 65535, "a fragment ends too far");
    require(!info.has_ports || info.offset == 0, "ports in a later fragment");
  }
  if (is_flow(general) && frame.contiguous == frame.total &&
      checksum_is_partial(frame.bytes.data(), general)) {
    complete_checksum(frame.bytes.data(), general);
  }
}

void icmp(const std::uint8_t* data, std::size_t size) {
  Frame frame(data, size);
  QuotedPacket quoted;
  if (!parse_icmp_error(frame.bytes.data(), frame.contiguous, frame.parsed, quoted)) {
    return;
  }
  require(is_flow(quoted.inner) && !quoted.later_fragment, "an error without a quoted tuple");
  require(quoted.inner.l4_offset + 8u <= frame.contiguous, "quoted ports lie outside the frame");
  frame.parsed.kind == FrameKind::kIcmp4 ? translate_error_and_back<Ipv4>(frame, quoted)
                                         : translate_error_and_back<Ipv6>(frame, quoted);
}

void rewrite(const std::uint8_t* data, std::size_t size) {
  Frame frame(data, size);
  if (is_flow(frame.parsed) || is_fragment(frame.parsed)) {
    frame.parsed.family == Family::kIpv4 ? rewrite_and_back<Ipv4>(frame)
                                         : rewrite_and_back<Ipv6>(frame);
  }
}

void reject(const std::uint8_t* data, std::size_t size) {
  Frame frame(data, size);
  std::vector<std::uint8_t> out(kMaxIcmpErrorFrame);
  const std::uint32_t room =
      size == 0 ? 0 : std::min<std::uint32_t>(kMaxIcmpErrorFrame, data[0] * 16u);
  const std::uint32_t length =
      build_reject(frame.bytes.data(), frame.contiguous, frame.parsed, out.data(), room);
  require(length <= room, "more written than there was room");
  if (length != 0) {
    require(!is_icmp_error(frame.bytes.data(), frame.parsed), "an error about an error");
    ParsedFrame answer;
    parse_frame(out.data(), length, length, answer);
    require(answer.kind != FrameKind::kBad, "an answer that does not parse");
    require(answer.dst() == frame.parsed.src(), "an answer to somebody else");
  }
  if (make_echo_reply(frame.bytes.data(), frame.parsed)) {
    ParsedFrame reply;
    parse_frame(frame.bytes.data(), frame.contiguous, frame.total, reply);
    require(reply.kind == frame.parsed.kind, "an echo reply that does not parse");
  }
}

void neighbor(const std::uint8_t* data, std::size_t size) {
  Frame frame(data, size);
  const MacAddress own{{2, 0, 0, 0, 0, 9}};
  if (frame.parsed.kind == FrameKind::kArp && parse_arp(frame.bytes.data())) {
    make_arp_reply(frame.bytes.data(), own);
    require(parse_arp(frame.bytes.data()).has_value(), "an ARP reply that does not parse");
    return;
  }
  (void)parse_neighbor_advertisement(frame.bytes.data(), frame.contiguous, frame.parsed);
  const auto asked =
      parse_neighbor_solicitation(frame.bytes.data(), frame.contiguous, frame.parsed);
  if (asked) {
    std::vector<std::uint8_t> out(kNeighborAdvertisementLength);
    build_neighbor_advertisement(out.data(), *asked, own);
    ParsedFrame answer;
    parse_frame_general(out.data(), kNeighborAdvertisementLength, kNeighborAdvertisementLength,
                        answer);
    require(answer.kind == FrameKind::kNd || answer.error == ParseError::kMartian,
            "an advertisement that does not parse");
  }
}

void address(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto parsed = parse_address(text)) {
    require(parse_address(to_string(*parsed)) == parsed, "an address does not survive printing");
  }
  if (const auto parsed = parse_cidr(text)) {
    require(parse_cidr(to_string(*parsed)) == parsed, "a prefix does not survive printing");
    require(parsed->contains(parsed->address()), "a prefix without its own address");
  }
  if (const auto parsed = parse_mac(text)) {
    require(parse_mac(to_string(*parsed)) == parsed, "a MAC does not survive printing");
  }
}

}  // namespace sluice::fuzz
