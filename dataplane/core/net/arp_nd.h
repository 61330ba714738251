#pragma once

// Address resolution for addresses that exist only in the table: ARP (RFC 826, 5227) and neighbour
// discovery (RFC 4861). This file reads and makes frames; whether an address is ours is the
// caller's question, asked about `target` before any answer (F38).

#include <cstdint>
#include <optional>

#include "dataplane/core/net/address.h"
#include "dataplane/core/net/parse.h"

namespace sluice::core {

enum class ArpOperation : std::uint16_t { kRequest = 1, kReply = 2 };

struct ArpPacket {
  ArpOperation operation = ArpOperation::kRequest;
  MacAddress sender_mac;
  Ipv4Address sender;
  MacAddress target_mac;
  Ipv4Address target;
};

/// Reads a kArp frame. @return nullopt: not Ethernet and IPv4, another operation, or a sender MAC
/// that is a group (nobody may be answered there). Precondition: parse_frame() said kArp.
[[nodiscard]] std::optional<ArpPacket> parse_arp(const std::uint8_t* data) noexcept;

/// Length of an ARP frame without padding.
inline constexpr std::uint32_t kArpFrameLength = 42;

/// Turns the request into the reply "target is at `own`" in place. Precondition: parse_arp() read
/// a request for an address of ours.
void make_arp_reply(std::uint8_t* data, const MacAddress& own) noexcept;

/// Which form of gratuitous ARP; neighbours differ in which one they learn from (RFC 5227 3).
enum class GratuitousForm : std::uint8_t { kRequest, kReply };

/// Broadcasts that `address` is at `own`. Writes kArpFrameLength bytes to `out`.
void build_gratuitous_arp(std::uint8_t* out, Ipv4Address address, const MacAddress& own,
                          GratuitousForm form) noexcept;

struct NeighborSolicitation {
  Ipv6Address src;  ///< unspecified: duplicate address detection
  Ipv6Address target;
  std::optional<MacAddress> source_mac;  ///< source link-layer option
  MacAddress eth_src;                    ///< of the frame
};

/// Reads a kNd frame that is a valid solicitation: hop limit 255, code 0, right checksum, length,
/// options of non-zero length, target no group, detection only to a solicited-node group and
/// without option (RFC 4861 7.1.1).
/// @param contiguous  bytes readable at `data`. @return nullopt: something else, or to be ignored.
[[nodiscard]] std::optional<NeighborSolicitation> parse_neighbor_solicitation(
    const std::uint8_t* data, std::uint32_t contiguous, const ParsedFrame& frame) noexcept;

struct NeighborAdvertisement {
  Ipv6Address src;
  Ipv6Address target;
  std::optional<MacAddress> target_mac;  ///< target link-layer option
  bool solicited = false;
  bool override_cache = false;
};

/// The same for an advertisement (RFC 4861 7.1.2).
[[nodiscard]] std::optional<NeighborAdvertisement> parse_neighbor_advertisement(
    const std::uint8_t* data, std::uint32_t contiguous, const ParsedFrame& frame) noexcept;

/// Length of the advertisements below.
inline constexpr std::uint32_t kNeighborAdvertisementLength = 86;

/// Answers a solicitation for an address of ours: to the asker, solicited and override, or to all
/// nodes, not solicited, when the asker has no address yet (RFC 4861 7.2.4). With target link-layer
/// option, hop limit 255. Writes kNeighborAdvertisementLength bytes; `out` may be the frame that
/// asked.
void build_neighbor_advertisement(std::uint8_t* out, const NeighborSolicitation& asked,
                                  const MacAddress& own) noexcept;

/// Tells all nodes that `address` is at `own` (RFC 4861 7.2.6): override, not solicited.
void build_unsolicited_advertisement(std::uint8_t* out, const Ipv6Address& address,
                                     const MacAddress& own) noexcept;

/// ff02::1:ffXX:XXXX of an address.
[[nodiscard]] Ipv6Address solicited_node_group(const Ipv6Address& address) noexcept;

}  // namespace sluice::core
