#include "dataplane/core/net/ip_chain.h"

#include "dataplane/core/net/headers.h"

namespace sluice::core {

namespace {

/// A chain of more headers is refused; no stack makes one (F25).
constexpr unsigned kMaxExtensionHeaders = 8;

bool is_extension(std::uint8_t header) noexcept {
  return header == kIpProtoHopByHop || header == kIpProtoDestinationOptions ||
         header == kIpProtoRouting || header == kIpProtoFragment;
}

/// Takes note of a routing header. @return false: forbidden.
bool note_routing(const std::uint8_t* header, Ipv6Chain& chain) noexcept {
  constexpr std::size_t kType = 2;
  constexpr std::size_t kSegmentsLeft = 3;
  chain.opaque = chain.opaque || header[kSegmentsLeft] != 0;
  return header[kType] != 0;
}

void note_fragment(const std::uint8_t* header, std::uint32_t offset, Ipv6Chain& chain) noexcept {
  const std::uint16_t field = load_be16(header + 2);
  chain.fragment_offset = offset;
  chain.later_fragment = (field & 0xfff8) != 0;
  chain.fragment = chain.later_fragment || (field & 1) != 0;
}

}  // namespace

Ipv6Chain walk_ipv6_chain(const std::uint8_t* data, std::uint32_t offset, std::uint32_t end,
                          std::uint8_t next_header) noexcept {
  constexpr std::uint32_t kUnit = 8;  // every extension header is a multiple of 8 bytes
  Ipv6Chain chain;
  chain.protocol = next_header;
  chain.l4_offset = offset;
  for (unsigned count = 0; is_extension(chain.protocol) && !chain.later_fragment; ++count) {
    if (count == kMaxExtensionHeaders || (chain.protocol == kIpProtoHopByHop && count != 0)) {
      chain.error = ParseError::kForbiddenHeader;
      return chain;
    }
    const std::uint32_t at = chain.l4_offset;
    if (at > end || end - at < kUnit) {
      chain.error = ParseError::kTruncatedIp;
      return chain;
    }
    const std::uint8_t* header = data + at;
    std::uint32_t length = (header[1] + 1u) * kUnit;
    if (chain.protocol == kIpProtoFragment) {
      length = kUnit;  // its second byte is reserved
      if (chain.fragment_offset != 0) {
        chain.error = ParseError::kForbiddenHeader;
        return chain;
      }
      note_fragment(header, at, chain);
    } else if (chain.protocol == kIpProtoRouting && !note_routing(header, chain)) {
      chain.error = ParseError::kForbiddenHeader;
      return chain;
    }
    if (end - at < length) {
      chain.error = ParseError::kTruncatedIp;
      return chain;
    }
    chain.protocol = header[0];
    chain.l4_offset = at + length;
  }
  return chain;
}

}  // namespace sluice::core
