#pragma once

// Builds frames for tests, layer by layer:
//
//   auto frame = PacketBuilder().eth().ipv4("10.0.0.1", "10.0.0.2").tcp(1000, 80, kSyn).build();
//   auto error = PacketBuilder().eth().ipv4("192.0.2.1", "10.0.0.1").icmp(3, 4, 1400)
//                    .quote(frame, 28).build();
//
// build() fills in lengths, next-header fields and right checksums unless told otherwise. Nothing
// of dataplane/core/net computes them, so a frame can be the oracle for that code. Addresses and
// MACs are text; one that does not parse throws std::invalid_argument.

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::test {

using Bytes = std::vector<std::uint8_t>;

inline constexpr std::uint8_t kFin = 0x01;
inline constexpr std::uint8_t kSyn = 0x02;
inline constexpr std::uint8_t kRst = 0x04;
inline constexpr std::uint8_t kPsh = 0x08;
inline constexpr std::uint8_t kAck = 0x10;

inline constexpr const char* kPeerMac = "02:00:00:00:00:01";  ///< who sends to us
inline constexpr const char* kOwnMac = "02:00:00:00:00:fe";   ///< the port's
inline constexpr const char* kBroadcastMac = "ff:ff:ff:ff:ff:ff";

class PacketBuilder {
 public:
  PacketBuilder& eth(std::string_view src = kPeerMac, std::string_view dst = kOwnMac);
  /// An 802.1Q tag behind the Ethernet addresses.
  PacketBuilder& vlan(std::uint16_t id);
  /// For frames that are neither IP nor ARP.
  PacketBuilder& ether_type(std::uint16_t type);

  PacketBuilder& ipv4(std::string_view src, std::string_view dst, std::uint8_t ttl = 64);
  // The next four change the IPv4 header just begun.
  PacketBuilder& id(std::uint16_t id);
  PacketBuilder& dont_fragment();
  /// @param offset  bytes, a multiple of 8.
  PacketBuilder& fragment(std::uint16_t offset, bool more);
  /// Padded with zeros to a multiple of 4 bytes.
  PacketBuilder& ipv4_options(const Bytes& options);

  PacketBuilder& ipv6(std::string_view src, std::string_view dst, std::uint8_t hop_limit = 64);
  // Extension headers, in the order called.
  PacketBuilder& hop_by_hop(std::uint8_t extra_units = 0);
  PacketBuilder& destination_options(std::uint8_t extra_units = 0);
  PacketBuilder& routing(std::uint8_t type, std::uint8_t segments_left);
  PacketBuilder& fragment6(std::uint16_t offset, bool more, std::uint32_t id = 1);

  /// Protocol of the header before, when no known layer follows (later fragments, GRE, ...).
  PacketBuilder& protocol(std::uint8_t number);

  PacketBuilder& tcp(std::uint16_t sport, std::uint16_t dport, std::uint8_t flags = kAck,
                     std::uint32_t seq = 1000, std::uint32_t ack = 2000);
  PacketBuilder& tcp_options(const Bytes& options);
  PacketBuilder& udp(std::uint16_t sport, std::uint16_t dport);
  PacketBuilder& sctp(std::uint16_t sport, std::uint16_t dport, std::uint32_t tag = 7);
  /// ICMP when the IP header before is IPv4, else ICMPv6. @param rest  the second 32-bit word.
  PacketBuilder& icmp(std::uint8_t type, std::uint8_t code, std::uint32_t rest = 0);
  PacketBuilder& echo_request(std::uint16_t id, std::uint16_t sequence);
  /// Neighbour solicitation and advertisement; an empty MAC leaves the link-layer option out.
  PacketBuilder& neighbor_solicitation(std::string_view target, std::string_view mac = kPeerMac);
  PacketBuilder& neighbor_advertisement(std::string_view target, std::string_view mac,
                                        std::uint8_t flags);

  PacketBuilder& arp(std::uint16_t operation, std::string_view sender_mac,
                     std::string_view sender_ip, std::string_view target_mac,
                     std::string_view target_ip);
  PacketBuilder& arp_request(std::string_view sender_ip, std::string_view target_ip);

  /// `size` bytes of a fixed pattern.
  PacketBuilder& payload(std::size_t size);
  PacketBuilder& payload(std::string_view text);
  PacketBuilder& raw(const Bytes& bytes);
  /// Quotes an Ethernet frame's packet from its IP header on, at most `limit` bytes.
  PacketBuilder& quote(const Bytes& frame, std::size_t limit = 65535);

  // How build() deviates from a right frame.
  PacketBuilder& no_udp_checksum();   ///< field 0
  PacketBuilder& partial_checksum();  ///< TCP, UDP: bare pseudo-header sum; SCTP: 0
  PacketBuilder& wrong_l4_checksum();
  PacketBuilder& wrong_ip_checksum();
  /// Of the last IP header begun: total length (IPv4) or payload length (IPv6) as given.
  PacketBuilder& ip_length(std::uint16_t value);
  PacketBuilder& pad_to(std::size_t frame_length);  ///< Ethernet padding
  PacketBuilder& cut_to(std::size_t frame_length);

  [[nodiscard]] Bytes build() const;

 private:
  enum class Kind : std::uint8_t {
    kEther,
    kVlan,
    kIpv4,
    kIpv6,
    kExtension,
    kTcp,
    kUdp,
    kSctp,
    kIcmp,
    kArp,
    kPayload
  };
  enum class Checksum : std::uint8_t { kRight, kNone, kPartial, kWrong };
  struct Layer {
    Kind kind;
    Bytes header;
    std::optional<std::uint16_t> next;    ///< protocol or EtherType, as given
    std::optional<std::uint16_t> length;  ///< as given
    Checksum checksum = Checksum::kRight;
  };

  Layer& add(Kind kind, std::size_t size);
  Layer& last(Kind kind);
  [[nodiscard]] std::uint16_t number_of(std::size_t index) const;
  [[nodiscard]] const Layer* ip_before(std::size_t index) const;
  void finish(std::size_t index, Bytes& header, Bytes& body) const;
  static void finish_ipv4(const Layer& layer, std::uint16_t next, Bytes& header,
                          std::size_t payload);
  void finish_sum(std::size_t index, const Bytes& segment, Bytes& header) const;
  void finish_l4(std::size_t index, Bytes& header, const Bytes& body) const;

  std::vector<Layer> layers_;
  std::size_t pad_ = 0;
  std::size_t cut_ = static_cast<std::size_t>(-1);
};

/// Cuts an IPv4 or IPv6 frame into fragments whose IP packets are at most `mtu` bytes.
[[nodiscard]] std::vector<Bytes> fragment_frame(const Bytes& frame, std::size_t mtu,
                                                std::uint32_t id);

}  // namespace sluice::test
