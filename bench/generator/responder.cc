#include "bench/generator/responder.h"

#include <cstring>

#include "dataplane/core/net/checksum.h"
#include "dataplane/core/net/headers.h"

namespace sluice::bench {
namespace {

constexpr std::uint32_t kArpOp = 14 + 6, kArpSender = 14 + 8, kArpTarget = 14 + 18;
constexpr std::uint32_t kIcmp = 14 + 40, kNdTarget = kIcmp + 8, kNdOption = kNdTarget + 16;
constexpr std::uint32_t kAdvertisement = kNdOption + 8;

bool answer_arp(std::uint8_t* frame, std::uint32_t length, const core::MacAddress& own) noexcept {
  if (length < 14 + core::kArpLength || core::load_be16(frame + kArpOp) != 1) {
    return false;
  }
  std::uint8_t sender[10];  // MAC and IPv4 address
  std::memcpy(sender, frame + kArpSender, sizeof sender);
  std::memcpy(frame, sender, 6);
  own.store(frame + 6);
  core::store_be16(frame + kArpOp, 2);
  own.store(frame + kArpSender);
  std::memcpy(frame + kArpSender + 6, frame + kArpTarget + 6, 4);
  std::memcpy(frame + kArpTarget, sender, sizeof sender);
  return true;
}

bool answer_nd(std::uint8_t* frame, std::uint32_t& length, const core::MacAddress& own) noexcept {
  std::uint8_t* ip = frame + 14;
  const bool solicitation = length >= kNdOption && ip[core::ipv6::kNextHeader] == 58 &&
                            frame[kIcmp] == core::kNdNeighborSolicitation;
  const auto asking = core::Ipv6Address::load(ip + core::ipv6::kSrc);
  if (!solicitation || core::IpAddress(asking).is_unspecified()) {
    return false;
  }
  std::memcpy(frame, frame + 6, 6);
  own.store(frame + 6);
  core::store_be16(ip + core::ipv6::kPayloadLength, kAdvertisement - kIcmp);
  const auto target = core::Ipv6Address::load(frame + kNdTarget);
  target.store(ip + core::ipv6::kSrc);
  asking.store(ip + core::ipv6::kDst);
  frame[kIcmp] = core::kNdNeighborAdvertisement;
  frame[kIcmp + 1] = 0;
  core::store_be16(frame + kIcmp + 2, 0);
  core::store_be32(frame + kIcmp + 4, 0x6000'0000);  // solicited, override
  frame[kNdOption] = 2;                              // target link-layer address
  frame[kNdOption + 1] = 1;
  own.store(frame + kNdOption + 2);
  length = kAdvertisement;
  const std::uint16_t sum =
      core::l4_checksum(core::IpAddress(target), core::IpAddress(asking), 58, frame + kIcmp,
                        kAdvertisement - kIcmp);
  std::memcpy(frame + kIcmp + 2, &sum, 2);
  return true;
}

}  // namespace

bool answer_neighbour(std::uint8_t* frame, std::uint32_t& length,
                      const core::MacAddress& own) noexcept {
  if (length < 14) {
    return false;
  }
  switch (core::load_be16(frame + 12)) {
    case core::kEtherTypeArp:
      return answer_arp(frame, length, own);
    case core::kEtherTypeIpv6:
      return answer_nd(frame, length, own);
    default:
      return false;
  }
}

}  // namespace sluice::bench
