#pragma once

#include <cstdint>

#include "dataplane/core/net/address.h"
#include "dataplane/core/net/parse.h"

namespace sluice::core {

/// Hop limit of packets we make (RFC 1700's recommended default; 255 where neighbour discovery
/// demands it).
inline constexpr std::uint8_t kOwnHopLimit = 64;
inline constexpr std::uint8_t kNdHopLimit = 255;

/// An IP header of a packet we make. Both addresses are of one family.
struct NewIpHeader {
  IpAddress src;
  IpAddress dst;
  std::uint8_t protocol = 0;
  std::uint8_t hop_limit = kOwnHopLimit;
  std::uint8_t traffic_class = 0;
};

/// 20 or 40.
[[nodiscard]] std::uint32_t ip_header_length(Family family) noexcept;

/// Writes Ethernet header and IP header for `payload_length` bytes behind them: no options, no
/// fragment, IPv4 identification 0, IPv4 checksum.
/// @return offset of the payload in the frame: 34 or 54.
std::uint32_t write_frame_headers(std::uint8_t* frame, const MacAddress& eth_dst,
                                  const MacAddress& eth_src, const NewIpHeader& ip,
                                  std::uint32_t payload_length) noexcept;

/// Writes the checksum of TCP, UDP, ICMP or ICMPv6 over the whole segment.
void write_l4_checksum(std::uint8_t* l4, const NewIpHeader& ip, std::uint32_t length) noexcept;

}  // namespace sluice::core
