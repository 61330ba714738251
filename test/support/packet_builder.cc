#include "test/support/packet_builder.h"

#include <algorithm>
#include <stdexcept>

#include <arpa/inet.h>

#include "test/support/packet_bytes.h"

namespace sluice::test {

namespace {

void put_ip(Bytes& to, std::size_t at, int family, std::string_view text) {
  if (inet_pton(family, std::string(text).c_str(), to.data() + at) != 1) {
    throw std::invalid_argument("no address: " + std::string(text));
  }
}

void put_mac(Bytes& to, std::size_t at, std::string_view text) {
  if (text.size() != 17) {
    throw std::invalid_argument("no MAC: " + std::string(text));
  }
  for (std::size_t i = 0; i < 6; ++i) {
    to[at + i] =
        static_cast<std::uint8_t>(std::stoi(std::string(text.substr(3 * i, 2)), nullptr, 16));
  }
}

}  // namespace

PacketBuilder::Layer& PacketBuilder::add(Kind kind, std::size_t size) {
  layers_.push_back(Layer{kind, Bytes(size), {}, {}, Checksum::kRight});
  return layers_.back();
}

PacketBuilder::Layer& PacketBuilder::last(Kind kind) {
  const auto found = std::find_if(layers_.rbegin(), layers_.rend(),
                                  [kind](const Layer& layer) { return layer.kind == kind; });
  if (found == layers_.rend()) {
    throw std::invalid_argument("PacketBuilder: no such layer yet");
  }
  return *found;
}

PacketBuilder& PacketBuilder::eth(std::string_view src, std::string_view dst) {
  Layer& layer = add(Kind::kEther, 14);
  put_mac(layer.header, 0, dst);
  put_mac(layer.header, 6, src);
  return *this;
}

PacketBuilder& PacketBuilder::vlan(std::uint16_t id) {
  put16(add(Kind::kVlan, 4).header, 0, id);
  return *this;
}

PacketBuilder& PacketBuilder::ether_type(std::uint16_t type) {
  layers_.back().next = type;
  return *this;
}

PacketBuilder& PacketBuilder::ipv4(std::string_view src, std::string_view dst, std::uint8_t ttl) {
  Layer& layer = add(Kind::kIpv4, 20);
  put_ip(layer.header, 12, AF_INET, src);
  put_ip(layer.header, 16, AF_INET, dst);
  layer.header[8] = ttl;
  return *this;
}

PacketBuilder& PacketBuilder::id(std::uint16_t id) {
  put16(last(Kind::kIpv4).header, 4, id);
  return *this;
}

PacketBuilder& PacketBuilder::dont_fragment() {
  last(Kind::kIpv4).header[6] |= 0x40;
  return *this;
}

PacketBuilder& PacketBuilder::fragment(std::uint16_t offset, bool more) {
  put16(last(Kind::kIpv4).header, 6, offset / 8u | (more ? 0x2000u : 0u));
  return *this;
}

PacketBuilder& PacketBuilder::ipv4_options(const Bytes& options) {
  Bytes& header = last(Kind::kIpv4).header;
  append(header, options);
  header.resize((header.size() + 3) / 4 * 4);
  return *this;
}

PacketBuilder& PacketBuilder::ipv6(std::string_view src, std::string_view dst,
                                   std::uint8_t hop_limit) {
  Layer& layer = add(Kind::kIpv6, 40);
  put_ip(layer.header, 8, AF_INET6, src);
  put_ip(layer.header, 24, AF_INET6, dst);
  layer.header[7] = hop_limit;
  return *this;
}

namespace {

/// Options of one kind that fill the header: PadN.
void fill_options(Bytes& header, std::uint8_t extra_units) {
  header[1] = extra_units;
  for (std::size_t at = 2; at < header.size();) {
    const std::size_t step = std::min<std::size_t>(header.size() - at, 257);
    header[at] = step == 1 ? 0 : 1;
    if (step > 1) {
      header[at + 1] = static_cast<std::uint8_t>(step - 2);
    }
    at += step;
  }
}

}  // namespace

PacketBuilder& PacketBuilder::hop_by_hop(std::uint8_t extra_units) {
  Layer& layer = add(Kind::kExtension, 8 + 8u * extra_units);
  fill_options(layer.header, extra_units);
  layer.length = std::uint16_t{0};
  return *this;
}

PacketBuilder& PacketBuilder::destination_options(std::uint8_t extra_units) {
  Layer& layer = add(Kind::kExtension, 8 + 8u * extra_units);
  fill_options(layer.header, extra_units);
  layer.length = std::uint16_t{60};
  return *this;
}

PacketBuilder& PacketBuilder::routing(std::uint8_t type, std::uint8_t segments_left) {
  Layer& layer = add(Kind::kExtension, 24);
  layer.header[1] = 2;
  layer.header[2] = type;
  layer.header[3] = segments_left;
  layer.length = std::uint16_t{43};
  return *this;
}

PacketBuilder& PacketBuilder::fragment6(std::uint16_t offset, bool more, std::uint32_t id) {
  Layer& layer = add(Kind::kExtension, 8);
  put16(layer.header, 2, (offset & 0xfff8u) | (more ? 1u : 0u));
  put32(layer.header, 4, id);
  layer.length = std::uint16_t{44};
  return *this;
}

PacketBuilder& PacketBuilder::protocol(std::uint8_t number) {
  layers_.back().next = number;
  return *this;
}

PacketBuilder& PacketBuilder::tcp(std::uint16_t sport, std::uint16_t dport, std::uint8_t flags,
                                  std::uint32_t seq, std::uint32_t ack) {
  Bytes& header = add(Kind::kTcp, 20).header;
  put16(header, 0, sport);
  put16(header, 2, dport);
  put32(header, 4, seq);
  put32(header, 8, ack);
  header[13] = flags;
  put16(header, 14, 0xffff);
  return *this;
}

PacketBuilder& PacketBuilder::tcp_options(const Bytes& options) {
  Bytes& header = last(Kind::kTcp).header;
  append(header, options);
  header.resize((header.size() + 3) / 4 * 4);
  return *this;
}

PacketBuilder& PacketBuilder::udp(std::uint16_t sport, std::uint16_t dport) {
  Bytes& header = add(Kind::kUdp, 8).header;
  put16(header, 0, sport);
  put16(header, 2, dport);
  return *this;
}

PacketBuilder& PacketBuilder::sctp(std::uint16_t sport, std::uint16_t dport, std::uint32_t tag) {
  Bytes& header = add(Kind::kSctp, 12).header;
  put16(header, 0, sport);
  put16(header, 2, dport);
  put32(header, 4, tag);
  return *this;
}

PacketBuilder& PacketBuilder::icmp(std::uint8_t type, std::uint8_t code, std::uint32_t rest) {
  Bytes& header = add(Kind::kIcmp, 8).header;
  header[0] = type;
  header[1] = code;
  put32(header, 4, rest);
  return *this;
}

PacketBuilder& PacketBuilder::echo_request(std::uint16_t id, std::uint16_t sequence) {
  const Layer* ip = ip_before(layers_.size());
  const bool v4 = ip != nullptr && ip->kind == Kind::kIpv4;
  return icmp(v4 ? 8 : 128, 0, std::uint32_t{id} << 16 | sequence);
}

namespace {

Bytes nd_body(std::string_view target, std::string_view mac, std::uint8_t option) {
  Bytes body(mac.empty() ? 16 : 24);
  put_ip(body, 0, AF_INET6, target);
  if (!mac.empty()) {
    body[16] = option;
    body[17] = 1;
    put_mac(body, 18, mac);
  }
  return body;
}

}  // namespace

PacketBuilder& PacketBuilder::neighbor_solicitation(std::string_view target, std::string_view mac) {
  return icmp(135, 0).raw(nd_body(target, mac, 1));
}

PacketBuilder& PacketBuilder::neighbor_advertisement(std::string_view target, std::string_view mac,
                                                     std::uint8_t flags) {
  return icmp(136, 0, std::uint32_t{flags} << 24).raw(nd_body(target, mac, 2));
}

PacketBuilder& PacketBuilder::arp(std::uint16_t operation, std::string_view sender_mac,
                                  std::string_view sender_ip, std::string_view target_mac,
                                  std::string_view target_ip) {
  Bytes& header = add(Kind::kArp, 28).header;
  put16(header, 0, 1);
  put16(header, 2, 0x0800);
  header[4] = 6;
  header[5] = 4;
  put16(header, 6, operation);
  put_mac(header, 8, sender_mac);
  put_ip(header, 14, AF_INET, sender_ip);
  put_mac(header, 18, target_mac);
  put_ip(header, 24, AF_INET, target_ip);
  return *this;
}

PacketBuilder& PacketBuilder::arp_request(std::string_view sender_ip, std::string_view target_ip) {
  return arp(1, kPeerMac, sender_ip, "00:00:00:00:00:00", target_ip);
}

PacketBuilder& PacketBuilder::payload(std::size_t size) {
  Bytes& bytes = add(Kind::kPayload, size).header;
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<std::uint8_t>(i * 7 + 3);
  }
  return *this;
}

PacketBuilder& PacketBuilder::payload(std::string_view text) {
  return raw(Bytes(text.begin(), text.end()));
}

PacketBuilder& PacketBuilder::raw(const Bytes& bytes) {
  add(Kind::kPayload, 0).header = bytes;
  return *this;
}

PacketBuilder& PacketBuilder::quote(const Bytes& frame, std::size_t limit) {
  const std::size_t length = std::min(frame.size() - 14, limit);
  return raw(Bytes(frame.begin() + 14, frame.begin() + 14 + static_cast<std::ptrdiff_t>(length)));
}

PacketBuilder& PacketBuilder::no_udp_checksum() {
  last(Kind::kUdp).checksum = Checksum::kNone;
  return *this;
}

namespace {

template <class Layers, class Kind>
auto& last_l4(Layers& layers, Kind tcp, Kind icmp) {
  const auto found = std::find_if(layers.rbegin(), layers.rend(), [&](const auto& layer) {
    return layer.kind >= tcp && layer.kind <= icmp;
  });
  if (found == layers.rend()) {
    throw std::invalid_argument("PacketBuilder: no L4 layer yet");
  }
  return *found;
}

}  // namespace

PacketBuilder& PacketBuilder::partial_checksum() {
  last_l4(layers_, Kind::kTcp, Kind::kIcmp).checksum = Checksum::kPartial;
  return *this;
}

PacketBuilder& PacketBuilder::wrong_l4_checksum() {
  last_l4(layers_, Kind::kTcp, Kind::kIcmp).checksum = Checksum::kWrong;
  return *this;
}

PacketBuilder& PacketBuilder::wrong_ip_checksum() {
  last(Kind::kIpv4).checksum = Checksum::kWrong;
  return *this;
}

PacketBuilder& PacketBuilder::ip_length(std::uint16_t value) {
  const_cast<Layer*>(ip_before(layers_.size()))->length = value;
  return *this;
}

PacketBuilder& PacketBuilder::pad_to(std::size_t frame_length) {
  pad_ = frame_length;
  return *this;
}

PacketBuilder& PacketBuilder::cut_to(std::size_t frame_length) {
  cut_ = frame_length;
  return *this;
}

}  // namespace sluice::test
