#include "test/support/packet_view.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include <arpa/inet.h>

#include "test/support/reference_checksum.h"

namespace sluice::test {

namespace {

constexpr std::size_t kEther = 14;

}  // namespace

PacketView::PacketView(std::span<const std::uint8_t> frame) : frame_(frame) {
  if (ether_type() == 0x0800 && byte(kEther) >> 4 == 4) {
    read_ipv4();
  } else if (ether_type() == 0x86dd && byte(kEther) >> 4 == 6) {
    read_ipv6();
  }
}

void PacketView::read_ipv4() {
  version_ = 4;
  l3_ = kEther;
  end_ = l3_ + be16(l3_ + 2);
  protocol_ = byte(l3_ + 9);
  fragment_offset_ = static_cast<std::uint16_t>((be16(l3_ + 6) & 0x1fff) * 8);
  more_fragments_ = (be16(l3_ + 6) & 0x2000) != 0;
  l4_ = fragment_offset_ == 0 ? l3_ + (byte(l3_) & 15u) * 4u : 0;
}

void PacketView::read_ipv6() {
  version_ = 6;
  l3_ = kEther;
  end_ = l3_ + 40 + be16(l3_ + 4);
  protocol_ = byte(l3_ + 6);
  l4_ = l3_ + 40;
  while (protocol_ == 0 || protocol_ == 43 || protocol_ == 44 || protocol_ == 60) {
    const bool fragment = protocol_ == 44;
    if (fragment) {
      fragment_offset_ = be16(l4_ + 2) & 0xfff8;
      more_fragments_ = (be16(l4_ + 2) & 1) != 0;
    }
    protocol_ = byte(l4_);
    l4_ += fragment ? 8 : 8 + 8u * byte(l4_ + 1);
    if (fragment_offset_ != 0) {
      l4_ = 0;
      return;
    }
  }
}

std::uint8_t PacketView::byte(std::size_t at) const {
  return at < frame_.size() ? frame_[at] : std::uint8_t{0};
}

std::uint16_t PacketView::be16(std::size_t at) const {
  return static_cast<std::uint16_t>(byte(at) << 8 | byte(at + 1));
}

std::uint32_t PacketView::be32(std::size_t at) const {
  return std::uint32_t{be16(at)} << 16 | be16(at + 2);
}

std::string PacketView::mac_at(std::size_t at) const {
  std::array<char, 18> text;
  std::snprintf(text.data(), text.size(), "%02x:%02x:%02x:%02x:%02x:%02x", byte(at), byte(at + 1),
                byte(at + 2), byte(at + 3), byte(at + 4), byte(at + 5));
  return text.data();
}

namespace {

std::string address_text(std::span<const std::uint8_t> frame, std::size_t at, bool v4) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (at + (v4 ? 4 : 16) <= frame.size()) {
    inet_ntop(v4 ? AF_INET : AF_INET6, frame.data() + at, text.data(), text.size());
  }
  return text.data();
}

}  // namespace

std::string PacketView::src() const {
  return version_ == 0 ? "" : address_text(frame_, l3_ + (is_v4() ? 12 : 8), is_v4());
}

std::string PacketView::dst() const {
  return version_ == 0 ? "" : address_text(frame_, l3_ + (is_v4() ? 16 : 24), is_v4());
}

std::uint8_t PacketView::ttl() const {
  return version_ == 0 ? std::uint8_t{0} : byte(l3_ + (is_v4() ? 8 : 7));
}

std::uint16_t PacketView::ip_id() const {
  return is_v4() ? be16(l3_ + 4) : std::uint16_t{0};
}

bool PacketView::dont_fragment() const {
  return is_v4() && (byte(l3_ + 6) & 0x40) != 0;
}

bool PacketView::has_ports() const {
  return l4_ != 0 && (protocol_ == 6 || protocol_ == 17 || protocol_ == 132);
}

std::string PacketView::flow() const {
  if (version_ == 0) {
    return "no ip";
  }
  const auto end_point = [this](const std::string& address, std::uint16_t port) {
    return !has_ports() ? address
                        : (is_v4() ? address : '[' + address + ']') + ':' + std::to_string(port);
  };
  const std::string name = protocol_ == 6     ? "tcp"
                           : protocol_ == 17  ? "udp"
                           : protocol_ == 132 ? "sctp"
                           : protocol_ == 1   ? "icmp"
                           : protocol_ == 58  ? "icmp6"
                                              : "ip" + std::to_string(protocol_);
  return name + ' ' + end_point(src(), sport()) + " > " + end_point(dst(), dport());
}

std::size_t PacketView::l4_header() const {
  switch (protocol_) {
    case 6:
      return (byte(l4_ + 12) >> 4) * 4u;
    case 132:
      return 12;
    case 17:
    case 1:
    case 58:
      return 8;
    default:
      return 0;
  }
}

std::span<const std::uint8_t> PacketView::l4_span() const {
  const std::size_t end = std::min(end_, frame_.size());
  return l4_ == 0 || l4_ >= end ? std::span<const std::uint8_t>() : frame_.subspan(l4_, end - l4_);
}

Bytes PacketView::l4() const {
  const auto bytes = l4_span();
  return Bytes(bytes.begin(), bytes.end());
}

Bytes PacketView::payload() const {
  const auto bytes = l4_span();
  const auto rest = bytes.subspan(std::min(l4_header(), bytes.size()));
  return Bytes(rest.begin(), rest.end());
}

Bytes PacketView::inner_frame() const {
  const auto bytes = payload();
  if (bytes.empty()) {
    return {};
  }
  Bytes frame(kEther);
  const bool v6 = bytes[0] >> 4 == 6;
  frame[12] = v6 ? 0x86 : 0x08;
  frame[13] = v6 ? 0xdd : 0x00;
  frame.insert(frame.end(), bytes.begin(), bytes.end());
  return frame;
}

std::string PacketView::checksum_error() const {
  if (version_ == 0) {
    return "";
  }
  if (is_v4() && reference_sum(frame_.subspan(l3_, (byte(l3_) & 15u) * 4u)) != 0xffff) {
    return "IPv4 header checksum";
  }
  const auto segment = l4_span();
  if (l4_ == 0 || more_fragments_ || end_ > frame_.size()) {
    return "";
  }
  if (protocol_ == 132) {
    const std::uint32_t crc = std::uint32_t{byte(l4_ + 8)} | std::uint32_t{byte(l4_ + 9)} << 8 |
                              std::uint32_t{byte(l4_ + 10)} << 16 |
                              std::uint32_t{byte(l4_ + 11)} << 24;
    return segment.size() >= 12 && crc == reference_sctp_crc(segment) ? "" : "SCTP checksum";
  }
  if (protocol_ == 17 && be16(l4_ + 6) == 0) {
    return is_v4() ? "" : "UDP checksum 0 in IPv6";
  }
  if (protocol_ != 6 && protocol_ != 17 && protocol_ != 58 && protocol_ != 1) {
    return "";
  }
  const auto addresses = is_v4() ? frame_.subspan(l3_ + 12, 8) : frame_.subspan(l3_ + 8, 32);
  const std::uint16_t pseudo = protocol_ == 1
                                   ? std::uint16_t{0}
                                   : reference_pseudo_sum(addresses, protocol_, segment.size());
  return reference_sum(segment, pseudo) == 0xffff ? "" : "L4 checksum";
}

}  // namespace sluice::test
