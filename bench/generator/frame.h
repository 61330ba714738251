#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "bench/traffic.h"
#include "dataplane/core/net/checksum.h"
#include "dataplane/core/net/flow_key.h"
#include "dataplane/core/net/headers.h"
#include "dataplane/core/net/parse.h"

namespace sluice::bench {

/// The first bytes of every payload: a time stamp while measuring, a Note while flows are opened.
inline constexpr std::size_t kStampBytes = 6;

/// What the frames of one run have in common.
struct FrameShape {
  core::MacAddress to;
  core::MacAddress from;
  std::uint8_t proto = core::kIpProtoTcp;
};

/// What a frame of a handshake is, in its payload.
struct Note {
  enum Kind : std::uint8_t { kNone, kFirst, kAnswer, kConfirm };
  std::uint32_t flow = 0;
  Kind kind = kNone;

  void store(std::uint8_t* at) const noexcept {
    std::memcpy(at, &flow, 4);
    at[4] = kind;
    at[5] = 0;
  }
  static Note load(const std::uint8_t* at) noexcept {
    Note note;
    std::memcpy(&note.flow, at, 4);
    note.kind = static_cast<Kind>(at[4]);
    return note;
  }
};

/// Where things lie in a frame of a family and protocol.
struct FrameOffsets {
  std::uint32_t proto;     ///< the IP header's protocol byte
  std::uint32_t l4;
  std::uint32_t checksum;  ///< of L4
  std::uint32_t payload;   ///< where the stamp is

  [[nodiscard]] static constexpr FrameOffsets of(core::Family family, std::uint8_t protocol) {
    const bool v4 = family == core::Family::kIpv4;
    const bool tcp = protocol == core::kIpProtoTcp;
    const std::uint32_t l4 = core::kEthernetLength +
                             (v4 ? core::ipv4::kHeaderLength : core::ipv6::kHeaderLength);
    return {core::kEthernetLength + (v4 ? core::ipv4::kProtocol : core::ipv6::kNextHeader), l4,
            l4 + (tcp ? 16u : 6u),
            l4 + (tcp ? core::kTcpHeaderLength : core::kUdpHeaderLength)};
  }
  [[nodiscard]] constexpr std::uint32_t shortest() const noexcept {
    return std::max<std::uint32_t>(60, payload + static_cast<std::uint32_t>(kStampBytes));
  }
};

/// Adds a value to frames whose payload is zero, checksum included. One for all frames of a burst.
class Stamp {
 public:
  explicit Stamp(std::uint64_t value) noexcept
      : value_(value),
        words_(core::fold((value & 0xffff) + (value >> 16 & 0xffff) + (value >> 32 & 0xffff))) {}

  void put(std::uint8_t* frame, const FrameOffsets& at) const noexcept {
    std::memcpy(frame + at.payload, &value_, kStampBytes);
    const std::uint16_t field = core::load_raw16(frame + at.checksum);
    std::uint32_t sum = std::uint32_t{words_} + static_cast<std::uint16_t>(~field);
    sum = (sum & 0xffff) + (sum >> 16);
    const auto sent = static_cast<std::uint16_t>(~sum);
    // A UDP checksum is never sent as zero; for TCP both forms of zero are right.
    core::store_raw16(frame + at.checksum, sent == 0 ? std::uint16_t{0xffff} : sent);
  }

 private:
  std::uint64_t value_;
  std::uint16_t words_;
};

/// Writes the headers of a frame of `length` bytes (without FCS) whose payload is all zero; the
/// bytes up to offsets.shortest() are written.
template <class F>
void write_headers(std::uint8_t* at, const FrameShape& shape, const typename F::Key& key,
                   std::uint8_t tcp_flags, std::uint32_t length) noexcept {
  constexpr bool kV4 = F::kFamily == core::Family::kIpv4;
  const FrameOffsets o = FrameOffsets::of(F::kFamily, shape.proto);
  const std::uint32_t l4_length = length - o.l4;
  std::memset(at, 0, o.shortest());
  shape.to.store(at);
  shape.from.store(at + 6);
  core::store_be16(at + 12, kV4 ? core::kEtherTypeIpv4 : core::kEtherTypeIpv6);
  std::uint8_t* ip = at + core::kEthernetLength;
  if constexpr (kV4) {
    ip[0] = 0x45;
    core::store_be16(ip + core::ipv4::kTotalLength,
                     static_cast<std::uint16_t>(length - core::kEthernetLength));
    core::store_be16(ip + core::ipv4::kFragment, core::ipv4::kDontFragment);
    ip[core::ipv4::kTtl] = 64;
    ip[core::ipv4::kProtocol] = shape.proto;
    key.src.store(ip + core::ipv4::kSrc);
    key.dst.store(ip + core::ipv4::kDst);
    core::store_raw16(ip + core::ipv4::kChecksum, core::ipv4_header_checksum(ip, 20));
  } else {
    ip[0] = 0x60;
    core::store_be16(ip + core::ipv6::kPayloadLength, static_cast<std::uint16_t>(l4_length));
    ip[core::ipv6::kNextHeader] = shape.proto;
    ip[core::ipv6::kHopLimit] = 64;
    key.src.store(ip + core::ipv6::kSrc);
    key.dst.store(ip + core::ipv6::kDst);
  }
  std::uint8_t* l4 = at + o.l4;
  key.sport.store(l4);
  key.dport.store(l4 + 2);
  if (shape.proto == core::kIpProtoTcp) {
    const bool syn = (tcp_flags & core::kTcpSyn) != 0;
    core::store_be32(l4 + 4, syn ? 0 : 1);
    core::store_be32(l4 + 8, (tcp_flags & core::kTcpAck) != 0 ? 1 : 0);
    l4[12] = 0x50;
    l4[13] = tcp_flags;
    core::store_be16(l4 + 14, 0xffff);
  } else {
    core::store_be16(l4 + 4, static_cast<std::uint16_t>(l4_length));
  }
  const std::uint64_t sum =
      core::pseudo_header_sum(core::IpAddress(key.src), core::IpAddress(key.dst), shape.proto,
                              l4_length) +
      core::sum_bytes(l4, o.payload - o.l4);
  core::store_raw16(at + o.checksum, static_cast<std::uint16_t>(~core::fold(sum)));
}

}  // namespace sluice::bench
