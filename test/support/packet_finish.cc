// How PacketBuilder completes a frame (lengths, next headers, checksums) and cuts it into
// fragments.

#include <algorithm>
#include <span>

#include "test/support/packet_builder.h"
#include "test/support/packet_bytes.h"
#include "test/support/reference_checksum.h"

namespace sluice::test {

const PacketBuilder::Layer* PacketBuilder::ip_before(std::size_t index) const {
  while (index-- > 0) {
    if (layers_[index].kind == Kind::kIpv4 || layers_[index].kind == Kind::kIpv6) {
      return &layers_[index];
    }
  }
  return nullptr;
}

/// EtherType or protocol by which the layer before names layer `index`.
std::uint16_t PacketBuilder::number_of(std::size_t index) const {
  if (index >= layers_.size()) {
    return 59;  // no next header
  }
  const bool inside_ip = ip_before(index) != nullptr;
  const Layer* ip = ip_before(index);
  switch (layers_[index].kind) {
    case Kind::kVlan:
      return 0x8100;
    case Kind::kIpv4:
      return inside_ip ? 4 : 0x0800;
    case Kind::kIpv6:
      return inside_ip ? 41 : 0x86dd;
    case Kind::kArp:
      return 0x0806;
    case Kind::kExtension:
      return *layers_[index].length;
    case Kind::kTcp:
      return 6;
    case Kind::kUdp:
      return 17;
    case Kind::kSctp:
      return 132;
    case Kind::kIcmp:
      return ip != nullptr && ip->kind == Kind::kIpv6 ? 58 : 1;
    default:
      return inside_ip ? 59 : 0x88b5;  // local experiment
  }
}

void PacketBuilder::finish_l4(std::size_t index, Bytes& header, const Bytes& body) const {
  const Layer& layer = layers_[index];
  Bytes segment = header;
  append(segment, body);
  if (layer.kind == Kind::kSctp) {
    std::uint32_t crc = layer.checksum == Checksum::kPartial ? 0 : reference_sctp_crc(segment);
    crc ^= layer.checksum == Checksum::kWrong ? 0x5555u : 0u;
    for (std::size_t i = 0; i < 4; ++i) {
      header[8 + i] = static_cast<std::uint8_t>(crc >> (8 * i));
    }
    return;
  }
  finish_sum(index, segment, header);
}

void PacketBuilder::finish_sum(std::size_t index, const Bytes& segment, Bytes& header) const {
  const Layer& layer = layers_[index];
  const Layer* ip = ip_before(index);
  const std::size_t field = layer.kind == Kind::kTcp ? 16 : layer.kind == Kind::kUdp ? 6 : 2;
  std::uint16_t pseudo = 0;
  if (ip != nullptr && (layer.kind != Kind::kIcmp || ip->kind == Kind::kIpv6)) {
    const std::span<const std::uint8_t> whole(ip->header);
    const auto addresses = ip->kind == Kind::kIpv4 ? whole.subspan(12, 8) : whole.subspan(8, 32);
    pseudo = reference_pseudo_sum(addresses, static_cast<std::uint8_t>(number_of(index)),
                                  segment.size());
  }
  std::uint32_t sum = static_cast<std::uint16_t>(~reference_sum(segment, pseudo));
  sum = sum == 0 && layer.kind == Kind::kUdp ? 0xffff : sum;
  switch (layer.checksum) {
    case Checksum::kRight:
      break;
    case Checksum::kNone:
      sum = 0;
      break;
    case Checksum::kPartial:
      sum = pseudo;
      break;
    case Checksum::kWrong:
      sum ^= 0x5555;
  }
  put16(header, field, sum);
}

void PacketBuilder::finish_ipv4(const Layer& layer, std::uint16_t next, Bytes& header,
                                std::size_t payload) {
  header[0] = static_cast<std::uint8_t>(0x40 | header.size() / 4);
  header[9] = static_cast<std::uint8_t>(next);
  put16(header, 2, layer.length.value_or(static_cast<std::uint16_t>(header.size() + payload)));
  put16(header, 10, static_cast<std::uint16_t>(~reference_sum(header)));
  header[11] ^= layer.checksum == Checksum::kWrong ? std::uint8_t{0x55} : std::uint8_t{0};
}

/// Completes the header of layer `index`, whose payload is `body`.
void PacketBuilder::finish(std::size_t index, Bytes& header, Bytes& body) const {
  const Layer& layer = layers_[index];
  const std::uint16_t next = layer.next.value_or(number_of(index + 1));
  switch (layer.kind) {
    case Kind::kEther:
      put16(header, 12, next);
      break;
    case Kind::kVlan:
      put16(header, 2, next);
      break;
    case Kind::kIpv4:
      finish_ipv4(layer, next, header, body.size());
      break;
    case Kind::kIpv6:
      header[0] = 0x60;
      header[6] = static_cast<std::uint8_t>(next);
      put16(header, 4, layer.length.value_or(static_cast<std::uint16_t>(body.size())));
      break;
    case Kind::kExtension:
      header[0] = static_cast<std::uint8_t>(next);
      break;
    case Kind::kTcp:
      header[12] = static_cast<std::uint8_t>(header.size() / 4 << 4);
      finish_l4(index, header, body);
      break;
    case Kind::kUdp:
      put16(header, 4, static_cast<std::uint32_t>(header.size() + body.size()));
      finish_l4(index, header, body);
      break;
    case Kind::kSctp:
    case Kind::kIcmp:
      finish_l4(index, header, body);
      break;
    case Kind::kArp:
    case Kind::kPayload:
      break;
  }
}

Bytes PacketBuilder::build() const {
  Bytes body;
  for (std::size_t index = layers_.size(); index-- > 0;) {
    Bytes header = layers_[index].header;
    finish(index, header, body);
    append(header, body);
    body = std::move(header);
  }
  body.resize(std::min(std::max(body.size(), pad_), cut_));
  return body;
}

namespace {

Bytes fragment4(const Bytes& frame, std::size_t begin, std::size_t end, std::uint32_t id) {
  const std::size_t header = (frame[14] & 15u) * 4u;
  const std::size_t packet_end = 14u + get16(frame, 16);
  Bytes out(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(14 + header));
  out.insert(out.end(), frame.begin() + static_cast<std::ptrdiff_t>(14 + header + begin),
             frame.begin() + static_cast<std::ptrdiff_t>(14 + header + end));
  put16(out, 16, static_cast<std::uint32_t>(header + end - begin));
  put16(out, 18, id);
  put16(out, 20,
        static_cast<std::uint32_t>(begin / 8) | (14 + header + end < packet_end ? 0x2000u : 0u));
  put16(out, 24, 0);
  put16(out, 24, static_cast<std::uint16_t>(~reference_sum(std::span(out).subspan(14, header))));
  return out;
}

Bytes fragment6(const Bytes& frame, std::size_t begin, std::size_t end, std::uint32_t id) {
  const std::size_t length = get16(frame, 18);
  Bytes out(frame.begin(), frame.begin() + 54);
  Bytes header(8);
  header[0] = frame[20];
  put16(header, 2, static_cast<std::uint32_t>(begin) | (end < length ? 1u : 0u));
  put32(header, 4, id);
  append(out, header);
  out.insert(out.end(), frame.begin() + static_cast<std::ptrdiff_t>(54 + begin),
             frame.begin() + static_cast<std::ptrdiff_t>(54 + end));
  out[20] = 44;
  put16(out, 18, static_cast<std::uint32_t>(8 + end - begin));
  return out;
}

}  // namespace

std::vector<Bytes> fragment_frame(const Bytes& frame, std::size_t mtu, std::uint32_t id) {
  const bool v4 = get16(frame, 12) == 0x0800;
  const std::size_t header = v4 ? (frame[14] & 15u) * 4u : 40;
  const std::size_t payload = v4 ? get16(frame, 16) - header : get16(frame, 18);
  const std::size_t step = (mtu - header - (v4 ? 0 : 8)) / 8 * 8;
  std::vector<Bytes> pieces;
  for (std::size_t at = 0; at < payload; at += step) {
    const std::size_t end = std::min(payload, at + step);
    pieces.push_back(v4 ? fragment4(frame, at, end, id) : fragment6(frame, at, end, id));
  }
  return pieces;
}

}  // namespace sluice::test
