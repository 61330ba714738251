#pragma once

// Reads frames in assertions. Like PacketBuilder it shares no parsing or checksum code with
// dataplane/core/net. A field that the frame does not have reads as empty text or 0.

#include <cstdint>
#include <span>
#include <string>

#include "test/support/packet_builder.h"

namespace sluice::test {

class PacketView {
 public:
  /// `frame` must outlive the view.
  explicit PacketView(std::span<const std::uint8_t> frame);

  [[nodiscard]] std::string eth_src() const { return mac_at(6); }
  [[nodiscard]] std::string eth_dst() const { return mac_at(0); }
  [[nodiscard]] std::uint16_t ether_type() const { return be16(12); }
  [[nodiscard]] std::size_t size() const { return frame_.size(); }

  [[nodiscard]] bool is_v4() const { return version_ == 4; }
  [[nodiscard]] bool is_v6() const { return version_ == 6; }
  [[nodiscard]] std::string src() const;
  [[nodiscard]] std::string dst() const;
  [[nodiscard]] std::uint8_t ttl() const;
  [[nodiscard]] std::uint8_t protocol() const { return protocol_; }
  [[nodiscard]] std::uint16_t ip_id() const;
  [[nodiscard]] bool dont_fragment() const;
  [[nodiscard]] std::uint16_t fragment_offset() const { return fragment_offset_; }
  [[nodiscard]] bool more_fragments() const { return more_fragments_; }
  /// IP header and payload in bytes as the header says.
  [[nodiscard]] std::size_t ip_length() const { return l3_ == 0 ? 0 : end_ - l3_; }

  [[nodiscard]] std::uint16_t sport() const { return has_ports() ? be16(l4_) : std::uint16_t{0}; }
  [[nodiscard]] std::uint16_t dport() const {
    return has_ports() ? be16(l4_ + 2) : std::uint16_t{0};
  }
  /// "tcp 10.0.0.1:1000 > 10.0.0.2:80", "icmp 10.0.0.1 > 10.0.0.2".
  [[nodiscard]] std::string flow() const;
  [[nodiscard]] std::uint8_t tcp_flags() const { return protocol_ == 6 ? byte(l4_ + 13) : 0; }
  [[nodiscard]] std::uint32_t seq() const { return protocol_ == 6 ? be32(l4_ + 4) : 0; }
  [[nodiscard]] std::uint32_t ack() const { return protocol_ == 6 ? be32(l4_ + 8) : 0; }
  [[nodiscard]] std::uint8_t icmp_type() const { return is_icmp() ? byte(l4_) : 0; }
  [[nodiscard]] std::uint8_t icmp_code() const { return is_icmp() ? byte(l4_ + 1) : 0; }
  [[nodiscard]] std::uint32_t icmp_rest() const { return is_icmp() ? be32(l4_ + 4) : 0; }
  /// Bytes behind the L4 header (TCP, UDP, SCTP, ICMP), without Ethernet padding.
  [[nodiscard]] Bytes payload() const;
  /// Bytes from the L4 header on.
  [[nodiscard]] Bytes l4() const;

  /// The packet an ICMP error quotes (or an IPIP tunnel carries) as a frame of its own: a made-up
  /// Ethernet header and the inner packet. Empty when there is none.
  [[nodiscard]] Bytes inner_frame() const;

  /// IPv4 header, TCP, UDP, ICMP, ICMPv6 and SCTP sums. UDP 0 is right in IPv4 only. A fragment or
  /// a cut packet is judged by its IP header alone.
  [[nodiscard]] bool checksum_ok() const { return checksum_error().empty(); }
  /// What is wrong with the checksums; empty: nothing.
  [[nodiscard]] std::string checksum_error() const;

 private:
  [[nodiscard]] std::uint8_t byte(std::size_t at) const;
  [[nodiscard]] std::uint16_t be16(std::size_t at) const;
  [[nodiscard]] std::uint32_t be32(std::size_t at) const;
  [[nodiscard]] std::string mac_at(std::size_t at) const;
  [[nodiscard]] bool has_ports() const;
  [[nodiscard]] bool is_icmp() const { return l4_ != 0 && (protocol_ == 1 || protocol_ == 58); }
  [[nodiscard]] std::size_t l4_header() const;
  [[nodiscard]] std::span<const std::uint8_t> l4_span() const;
  void read_ipv4();
  void read_ipv6();

  std::span<const std::uint8_t> frame_;
  int version_ = 0;
  std::size_t l3_ = 0;
  std::size_t l4_ = 0;   ///< 0: none to read
  std::size_t end_ = 0;  ///< of the IP packet, perhaps behind the frame
  std::uint8_t protocol_ = 0;
  std::uint16_t fragment_offset_ = 0;
  bool more_fragments_ = false;
};

}  // namespace sluice::test
