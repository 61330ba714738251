#pragma once

#include <cstdint>

#include "dataplane/core/net/flow_key.h"

namespace sluice::core {

/// What a frame turned out to be. One byte; the worker switches on it once per frame.
enum class FrameKind : std::uint8_t {
  kFlow4,      ///< IPv4 TCP, UDP or SCTP with whole ports: ParsedFrame::key4 is set
  kFlow6,      ///< the same for IPv6: ParsedFrame::key6 is set
  kFragment4,  ///< any IPv4 fragment, the first one too
  kFragment6,  ///< IPv6 with a fragment header that really fragments (an atomic one is a flow)
  kIcmp4,      ///< ICMP that is not a fragment
  kIcmp6,      ///< ICMPv6 but neighbour discovery
  kArp,
  kNd,          ///< ICMPv6 133..137
  kOtherIp,     ///< IP with another protocol (GRE, ESP, ...) or no next header
  kOtherEther,  ///< neither IP nor ARP, or VLAN-tagged: goes to the host
  kBad,         ///< to be dropped, ParsedFrame::error says why
};

/// Why a frame is dropped by the parser. Each has a counter of the same name (parse_*).
enum class ParseError : std::uint8_t {
  kNone,
  kTruncatedEthernet,  ///< frame ends inside the Ethernet header or an ARP packet
  kTruncatedIp,     ///< IP header or extension chain runs past the IP length or what is readable,
                    ///< IHL < 5, IPv6 packet above 65535 bytes
  kTruncatedL4,     ///< ports (or the TCP header) run past the IP length; also a first fragment
                    ///< without its whole L4 header (RFC 1858)
  kTruncatedFrame,  ///< frame shorter than its IP length: rx_truncated (design section 5)
  kBadIpVersion,
  kBadIpChecksum,
  kMartian,          ///< loopback, multicast or broadcast source, loopback destination, src == dst
                     ///< and sport == dport (land), unspecified source to a unicast address,
                     ///< IPv4-mapped IPv6 on the wire (F103)
  kForbiddenHeader,  ///< IPv6 routing header type 0, more than 8 extension headers, hop-by-hop not
                     ///< first (F25); IPv4 source route; TCP fragment at offset 8 (RFC 3128), a
                     ///< fragment that ends above 65535
};

/// Result of parsing one frame. One cache line; lives in the batch, not in the mbuf.
/// For every kind of IP but kBad the key of `family` holds the addresses and the protocol; its
/// ports are zero unless the frame is a flow or a first fragment of TCP, UDP or SCTP.
struct alignas(64) ParsedFrame {
  union {
    FlowKey4 key4;
    FlowKey6 key6;
  };
  std::uint16_t l3_offset = 0;  ///< bytes from the start of the frame
  std::uint16_t l4_offset = 0;  ///< 0 when there is no L4 header to read (later fragment)
  std::uint16_t ip_length =
      0;  ///< IP header and payload in bytes; the frame may be longer (padding)
  FrameKind kind = FrameKind::kBad;
  ParseError error = ParseError::kNone;
  // The next two lie as in an IPv4 header, which the fast parser copies at once.
  std::uint8_t hop_limit = 0;     ///< TTL or hop limit as received
  std::uint8_t protocol = 0;      ///< IP protocol after extension headers
  std::uint8_t tcp_flags = 0;     ///< of TCP; of SCTP sctp_signal(); else 0
  bool multicast = false;         ///< Ethernet destination has the group bit
  Family family = Family::kIpv4;  ///< of the IP header; meaningless for kArp, kOtherEther, kBad
  ParsedFrame() noexcept : key6{} {}

  [[nodiscard]] IpAddress src() const noexcept {
    return family == Family::kIpv4 ? IpAddress(key4.src) : IpAddress(key6.src);
  }
  [[nodiscard]] IpAddress dst() const noexcept {
    return family == Family::kIpv4 ? IpAddress(key4.dst) : IpAddress(key6.dst);
  }
  /// Length of the L4 header and payload by the IP length. Precondition: l4_offset != 0.
  [[nodiscard]] std::uint32_t l4_length() const noexcept {
    return static_cast<std::uint32_t>(ip_length) + l3_offset - l4_offset;
  }
};
static_assert(sizeof(ParsedFrame) == 64);

inline constexpr std::uint8_t kTcpFin = 0x01;
inline constexpr std::uint8_t kTcpSyn = 0x02;
inline constexpr std::uint8_t kTcpRst = 0x04;
inline constexpr std::uint8_t kTcpAck = 0x10;

/// Parses an Ethernet frame. Reads nothing outside [data, data + length). The whole frame must be
/// contiguous up to the L4 header (the I/O layer sees to that).
/// @param contiguous  bytes readable at data.
/// @param total       length of the frame with all its segments; >= contiguous.
/// Errors: in ParsedFrame::error. Thread: any. Allocates nothing.
void parse_frame(const std::uint8_t* data, std::uint32_t contiguous, std::uint32_t total,
                 ParsedFrame& out) noexcept;

/// parse_frame() without its short cut for plain packets (parse_fast.h); same answer.
void parse_frame_general(const std::uint8_t* data, std::uint32_t contiguous, std::uint32_t total,
                         ParsedFrame& out) noexcept;

/// Fragment fields of a kFragment4/kFragment6 frame. {src, dst, id, protocol} names the packet it
/// is a piece of and picks the worker where the pieces meet (design section 5, owner rule 1).
struct FragmentInfo {
  IpAddress src;
  IpAddress dst;
  std::uint32_t id = 0;       ///< host order; 16 bits for IPv4
  std::uint8_t protocol = 0;  ///< IPv4: the protocol. IPv6: always 44, it is not part of identity
  bool more = false;          ///< more fragments follow
  bool has_ports = false;     ///< first fragment of TCP, UDP, SCTP: the frame's key has its ports
  std::uint16_t offset = 0;   ///< bytes from the start of the fragmentable part
  std::uint16_t length = 0;   ///< bytes of the fragmentable part in this piece
};

/// Precondition: parse_frame() returned kFragment4 or kFragment6 for this frame.
/// Thread: any. Errors: none.
[[nodiscard]] FragmentInfo fragment_info(const std::uint8_t* data,
                                         const ParsedFrame& frame) noexcept;

/// What an ICMP error quotes: the tuple of the packet that caused it, as quoted (not exchanged).
struct QuotedPacket {
  ParsedFrame inner;  ///< kind kFlow4/kFlow6 when ports are there (8 bytes of L4 suffice)
  std::uint16_t inner_l3_offset = 0;  ///< from the start of the outer frame
  bool later_fragment = false;        ///< quoted fragment with offset > 0: no ports (F36)
};

/// @return true and fills `out` when `frame` is an ICMP/ICMPv6 error that quotes an IP packet of
/// TCP, UDP or SCTP with its ports. ICMP: types 3, 4, 11, 12; ICMPv6: types 1-4. A quoted later
/// fragment returns false with out.later_fragment set: its bytes are no ports (F36). Checksums are
/// not verified, quoted headers are as the router that reports them had them.
[[nodiscard]] bool parse_icmp_error(const std::uint8_t* data, std::uint32_t contiguous,
                                    const ParsedFrame& frame, QuotedPacket& out) noexcept;

/// The quoted packet of `family` at data[at, end) alone; as for parse_icmp_error().
[[nodiscard]] bool parse_quoted(const std::uint8_t* data, std::uint32_t at, std::uint32_t end,
                                Family family, QuotedPacket& out) noexcept;

}  // namespace sluice::core
