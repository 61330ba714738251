#include "dataplane/core/net/arp_nd.h"

#include <algorithm>

#include "dataplane/core/net/checksum.h"
#include "dataplane/core/net/headers.h"
#include "dataplane/core/net/write_headers.h"

namespace sluice::core {

namespace {

// ARP for Ethernet and IPv4: offsets from the ARP header.
constexpr std::uint32_t kArpOperation = 6;
constexpr std::uint32_t kArpSenderMac = 8;
constexpr std::uint32_t kArpSender = 14;
constexpr std::uint32_t kArpTargetMac = 18;
constexpr std::uint32_t kArpTarget = 24;

constexpr MacAddress kBroadcastMac{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
constexpr MacAddress kAllNodesMac{{0x33, 0x33, 0, 0, 0, 1}};

/// Hardware type Ethernet, protocol IPv4, their address lengths.
constexpr std::uint8_t kArpStart[6] = {0, 1, 8, 0, 6, 4};

}  // namespace

std::optional<ArpPacket> parse_arp(const std::uint8_t* data) noexcept {
  const std::uint8_t* arp = data + kEthernetLength;
  const std::uint16_t operation = load_be16(arp + kArpOperation);
  if (std::memcmp(arp, kArpStart, sizeof kArpStart) != 0 || operation < 1 || operation > 2) {
    return std::nullopt;
  }
  ArpPacket packet;
  packet.operation = static_cast<ArpOperation>(operation);
  packet.sender_mac = MacAddress::load(arp + kArpSenderMac);
  packet.sender = Be32::load(arp + kArpSender);
  packet.target_mac = MacAddress::load(arp + kArpTargetMac);
  packet.target = Be32::load(arp + kArpTarget);
  return packet.sender_mac.is_multicast() ? std::nullopt : std::optional(packet);
}

void make_arp_reply(std::uint8_t* data, const MacAddress& own) noexcept {
  std::uint8_t* arp = data + kEthernetLength;
  const MacAddress asker_mac = MacAddress::load(arp + kArpSenderMac);
  const Ipv4Address asker = Be32::load(arp + kArpSender);
  const Ipv4Address asked = Be32::load(arp + kArpTarget);
  asker_mac.store(data);
  own.store(data + 6);
  store_be16(arp + kArpOperation, static_cast<std::uint16_t>(ArpOperation::kReply));
  own.store(arp + kArpSenderMac);
  asked.store(arp + kArpSender);
  asker_mac.store(arp + kArpTargetMac);
  asker.store(arp + kArpTarget);
}

void build_gratuitous_arp(std::uint8_t* out, Ipv4Address address, const MacAddress& own,
                          GratuitousForm form) noexcept {
  const bool reply = form == GratuitousForm::kReply;
  kBroadcastMac.store(out);
  own.store(out + 6);
  store_be16(out + kEthernetTypeOffset, kEtherTypeArp);
  std::uint8_t* arp = out + kEthernetLength;
  std::memcpy(arp, kArpStart, sizeof kArpStart);
  store_be16(arp + kArpOperation,
             static_cast<std::uint16_t>(reply ? ArpOperation::kReply : ArpOperation::kRequest));
  own.store(arp + kArpSenderMac);
  address.store(arp + kArpSender);
  (reply ? own : MacAddress{}).store(arp + kArpTargetMac);
  address.store(arp + kArpTarget);
}

namespace {

// Neighbour messages: offsets from the ICMPv6 header.
constexpr std::uint32_t kNdFlags = 4;
constexpr std::uint32_t kNdTarget = 8;
constexpr std::uint32_t kNdOptions = 24;
constexpr std::uint8_t kOptionSourceMac = 1;
constexpr std::uint8_t kOptionTargetMac = 2;
constexpr std::uint8_t kFlagSolicited = 0x40;
constexpr std::uint8_t kFlagOverride = 0x20;

/// A neighbour message that passed the checks common to both kinds.
struct NdMessage {
  const std::uint8_t* icmp = nullptr;
  std::uint32_t length = 0;
  std::optional<MacAddress> mac;  ///< the wanted link-layer option
};

/// Looks through the options. @return false: one has length 0 or runs past the end.
bool read_options(NdMessage& message, std::uint8_t wanted) noexcept {
  constexpr std::uint32_t kUnit = 8;
  std::uint32_t at = kNdOptions;
  while (at < message.length) {
    if (message.length - at < 2) {
      return false;
    }
    const std::uint32_t length = message.icmp[at + 1] * kUnit;
    if (length == 0 || length > message.length - at) {
      return false;
    }
    if (message.icmp[at] == wanted && length == kUnit) {
      message.mac = MacAddress::load(message.icmp + at + 2);
    }
    at += length;
  }
  return true;
}

std::optional<NdMessage> read_nd(const std::uint8_t* data, std::uint32_t contiguous,
                                 const ParsedFrame& frame, std::uint8_t type,
                                 std::uint8_t option) noexcept {
  if (frame.kind != FrameKind::kNd || frame.hop_limit != kNdHopLimit) {
    return std::nullopt;
  }
  NdMessage message;
  message.icmp = data + frame.l4_offset;
  message.length = frame.l4_length();
  if (message.length < kNdOptions || message.length > contiguous - frame.l4_offset ||
      message.icmp[0] != type || message.icmp[1] != 0 || message.icmp[kNdTarget] == 0xff) {
    return std::nullopt;
  }
  const std::uint16_t checksum =
      l4_checksum(frame.src(), frame.dst(), kIpProtoIcmpv6, message.icmp, message.length);
  if (checksum != load_raw16(message.icmp + 2) || !read_options(message, option)) {
    return std::nullopt;
  }
  return message;
}

/// Writes an advertisement of `target` at `own` with its link-layer option.
void write_advertisement(std::uint8_t* out, const Ipv6Address& target, const MacAddress& own,
                         const Ipv6Address& to, const MacAddress& eth_to,
                         std::uint8_t flags) noexcept {
  constexpr std::uint32_t kLength = kNdOptions + 8;
  const NewIpHeader ip{target, to, kIpProtoIcmpv6, kNdHopLimit, 0};
  std::uint8_t* icmp = out + write_frame_headers(out, eth_to, own, ip, kLength);
  std::memset(icmp, 0, kLength);
  icmp[0] = kNdNeighborAdvertisement;
  icmp[kNdFlags] = flags;
  target.store(icmp + kNdTarget);
  icmp[kNdOptions] = kOptionTargetMac;
  icmp[kNdOptions + 1] = 1;
  own.store(icmp + kNdOptions + 2);
  write_l4_checksum(icmp, ip, kLength);
}

constexpr Ipv6Address kAllNodes{{0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};

}  // namespace

Ipv6Address solicited_node_group(const Ipv6Address& address) noexcept {
  Ipv6Address group{{0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff}};
  std::copy(address.bytes.begin() + 13, address.bytes.end(), group.bytes.begin() + 13);
  return group;
}

std::optional<NeighborSolicitation> parse_neighbor_solicitation(const std::uint8_t* data,
                                                                std::uint32_t contiguous,
                                                                const ParsedFrame& frame) noexcept {
  const auto message = read_nd(data, contiguous, frame, kNdNeighborSolicitation, kOptionSourceMac);
  if (!message) {
    return std::nullopt;
  }
  NeighborSolicitation asked;
  asked.src = frame.key6.src;
  asked.target = Ipv6Address::load(message->icmp + kNdTarget);
  asked.source_mac = message->mac;
  asked.eth_src = MacAddress::load(data + 6);
  const bool detection = frame.src().is_unspecified();
  if (detection && (message->mac || frame.key6.dst != solicited_node_group(asked.target))) {
    return std::nullopt;
  }
  const MacAddress answer_to = asked.source_mac.value_or(asked.eth_src);
  return answer_to.is_multicast() ? std::nullopt : std::optional(asked);
}

std::optional<NeighborAdvertisement> parse_neighbor_advertisement(
    const std::uint8_t* data, std::uint32_t contiguous, const ParsedFrame& frame) noexcept {
  const auto message = read_nd(data, contiguous, frame, kNdNeighborAdvertisement, kOptionTargetMac);
  if (!message) {
    return std::nullopt;
  }
  NeighborAdvertisement told;
  told.src = frame.key6.src;
  told.target = Ipv6Address::load(message->icmp + kNdTarget);
  told.target_mac = message->mac;
  told.solicited = (message->icmp[kNdFlags] & kFlagSolicited) != 0;
  told.override_cache = (message->icmp[kNdFlags] & kFlagOverride) != 0;
  if (told.solicited && frame.dst().is_multicast()) {
    return std::nullopt;
  }
  return told;
}

void build_neighbor_advertisement(std::uint8_t* out, const NeighborSolicitation& asked,
                                  const MacAddress& own) noexcept {
  if (asked.src == Ipv6Address{}) {
    write_advertisement(out, asked.target, own, kAllNodes, kAllNodesMac, kFlagOverride);
    return;
  }
  write_advertisement(out, asked.target, own, asked.src, asked.source_mac.value_or(asked.eth_src),
                      kFlagSolicited | kFlagOverride);
}

void build_unsolicited_advertisement(std::uint8_t* out, const Ipv6Address& address,
                                     const MacAddress& own) noexcept {
  write_advertisement(out, address, own, kAllNodes, kAllNodesMac, kFlagOverride);
}

}  // namespace sluice::core
