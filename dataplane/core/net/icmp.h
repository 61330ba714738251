#pragma once

// ICMP errors: those of others, translated on their way, and those we make.
//
// Theory of operation of the translation: a router answers a packet of a translated flow with an
// error that quotes the packet as the router saw it. The receiver looks the quoted tuple up among
// its own sockets, so the quote must be put back into the receiver's view: outer addresses, quoted
// addresses and ports, the quoted IP and L4 checksums, and the error's own checksum (F7).
//
// Worked example: C:40000 -> V:80 is sent on as C:40000 -> B:8080. Router R answers C with "too
// big", quoting C:40000 -> B:8080. We make the quote C:40000 -> V:80 and leave R as the source.
// Towards the backend: an error that quotes V:80 -> C:40000 is made to quote B:8080 -> C:40000,
// with outer destination B instead of V.

#include <cstddef>
#include <cstdint>

#include "dataplane/core/net/parse.h"
#include "dataplane/core/net/rewrite.h"

namespace sluice::core {

/// What an ICMP error becomes. F: Ipv4 or Ipv6.
template <class F>
struct IcmpTranslation {
  typename F::Address outer_src;
  typename F::Address outer_dst;
  typename F::Key inner;  ///< new quoted tuple, in the direction of the quoted packet
};

/// Translates an ICMP error in place and takes one hop. Works with as little as 8 quoted bytes of
/// L4; checksums that are not quoted are left alone. Type, code and MTU stay (F7).
/// Precondition: parse_icmp_error() returned true for this frame and gave `quoted`; hop limit
/// above 1. Thread: owner of the frame. Errors: none.
void translate_icmp_error(std::uint8_t* data, std::uint32_t contiguous, const ParsedFrame& frame,
                          const QuotedPacket& quoted, const IcmpTranslation<Ipv4>& to) noexcept;
void translate_icmp_error(std::uint8_t* data, std::uint32_t contiguous, const ParsedFrame& frame,
                          const QuotedPacket& quoted, const IcmpTranslation<Ipv6>& to) noexcept;

/// Errors we make.
enum class IcmpErrorKind : std::uint8_t {
  kPortUnreachable,  ///< type 3 code 3, ICMPv6 type 1 code 4
  kTooBig,           ///< type 3 code 4, ICMPv6 type 2; carries an MTU
  kTimeExceeded,     ///< type 11 code 0, ICMPv6 type 3 code 0: hop limit ran out
  kHostUnreachable,  ///< type 3 code 1, ICMPv6 type 1 code 3: the tunnel to the backend fails
};

/// True for ICMP messages that must never be answered by an error: errors and redirects.
[[nodiscard]] bool is_icmp_error(const std::uint8_t* data, const ParsedFrame& frame) noexcept;

/// False where RFC 1122 3.2.2 and RFC 4443 2.4(e) forbid an error about this frame: ICMP errors,
/// later fragments, broadcast and multicast (link or IP), a source that names no single host.
[[nodiscard]] bool may_answer_with_error(const std::uint8_t* data,
                                         const ParsedFrame& frame) noexcept;

struct IcmpErrorRequest {
  IcmpErrorKind kind = IcmpErrorKind::kPortUnreachable;
  IpAddress source;       ///< ours, of the cause's family
  std::uint32_t mtu = 0;  ///< kTooBig: bytes, IP header included
};

/// Most bytes build_icmp_error() writes: Ethernet and 576 (IPv4) or 1280 (IPv6).
inline constexpr std::uint32_t kMaxIcmpErrorFrame = 14 + 1280;

/// Makes the error about `cause` as a frame that goes back where it came from (Ethernet addresses
/// exchanged). Quotes as much as is readable and allowed: up to 576 bytes in all for IPv4 (RFC 1812
/// 4.3.2.3), 1280 for IPv6 (RFC 4443 3.1), and never less than the IP header and 8 bytes when the
/// cause has them.
/// `out` may be `cause`. Precondition: may_answer_with_error().
/// @return length of the frame; 0: `capacity` does not hold headers and the least quote.
[[nodiscard]] std::uint32_t build_icmp_error(const std::uint8_t* cause, std::uint32_t contiguous,
                                             const ParsedFrame& frame,
                                             const IcmpErrorRequest& request, std::uint8_t* out,
                                             std::uint32_t capacity) noexcept;

/// Turns an echo request into its reply in place: addresses of both layers exchanged, hop limit 64.
/// A wrong ICMP checksum stays wrong. The caller has made sure that the address is ours.
/// @return false and no change: not an echo request, or sent to a group.
[[nodiscard]] bool make_echo_reply(std::uint8_t* data, const ParsedFrame& frame) noexcept;

}  // namespace sluice::core
