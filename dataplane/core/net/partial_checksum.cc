#include "dataplane/core/net/partial_checksum.h"

#include "dataplane/core/net/checksum.h"
#include "dataplane/core/net/crc32c.h"
#include "dataplane/core/net/headers.h"

namespace sluice::core {

namespace {

/// Pseudo-header sum read from the frame, folded. About 10 cycles.
std::uint16_t pseudo_sum(const std::uint8_t* data, const ParsedFrame& frame) noexcept {
  const std::uint8_t* ip = data + frame.l3_offset;
  std::uint64_t sum = Be32::from_host(frame.l4_length()).raw();
  sum += Be32::from_host(frame.protocol).raw();
  const bool v4 = frame.family == Family::kIpv4;
  const std::uint8_t* at = ip + (v4 ? ipv4::kSrc : ipv6::kSrc);
  const std::uint32_t words = v4 ? 2 : 8;
  for (std::uint32_t i = 0; i < words; ++i) {
    sum += load_raw32(at + 4 * i);
  }
  return fold(sum);
}

std::uint8_t* checksum_field(std::uint8_t* data, const ParsedFrame& frame) noexcept {
  return data + frame.l4_offset + (frame.protocol == kIpProtoTcp ? 16 : 6);
}

}  // namespace

bool checksum_is_partial(const std::uint8_t* data, const ParsedFrame& frame) noexcept {
  if (frame.kind != FrameKind::kFlow4 && frame.kind != FrameKind::kFlow6) {
    return false;
  }
  const std::uint8_t* l4 = data + frame.l4_offset;
  if (frame.protocol == kIpProtoSctp) {
    return load_raw32(l4 + kSctpCrcOffset) == 0;
  }
  const std::uint16_t field = load_raw16(l4 + (frame.protocol == kIpProtoTcp ? 16 : 6));
  return field == pseudo_sum(data, frame);
}

void complete_checksum_from_sum(std::uint8_t* data, const ParsedFrame& frame,
                                std::uint64_t l4_sum) noexcept {
  // The field holds the pseudo-header sum, which is exactly what the sum over L4 with the field
  // as zero lacks: nothing is to be added or taken away.
  const auto checksum = static_cast<std::uint16_t>(~fold(l4_sum));
  const bool udp = frame.protocol == kIpProtoUdp;
  store_raw16(checksum_field(data, frame), udp && checksum == 0 ? std::uint16_t{0xffff} : checksum);
}

void complete_sctp_from_state(std::uint8_t* data, const ParsedFrame& frame,
                              std::uint32_t state) noexcept {
  const std::uint32_t crc = ~state;
  std::memcpy(data + frame.l4_offset + kSctpCrcOffset, &crc, sizeof crc);
}

void complete_checksum(std::uint8_t* data, const ParsedFrame& frame) noexcept {
  std::uint8_t* l4 = data + frame.l4_offset;
  if (frame.protocol == kIpProtoSctp) {
    complete_sctp_from_state(data, frame, crc32c_update(~std::uint32_t{0}, l4, frame.l4_length()));
    return;
  }
  complete_checksum_from_sum(data, frame, sum_bytes(l4, frame.l4_length()));
}

}  // namespace sluice::core
