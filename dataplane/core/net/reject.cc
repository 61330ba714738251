#include "dataplane/core/net/reject.h"

#include <algorithm>

#include "dataplane/core/net/crc32c.h"
#include "dataplane/core/net/headers.h"
#include "dataplane/core/net/write_headers.h"

namespace sluice::core {

namespace {

/// Header of an answer in the name of the asked address.
NewIpHeader answer_header(const ParsedFrame& frame) noexcept {
  return {frame.dst(), frame.src(), frame.protocol, kOwnHopLimit, 0};
}

/// Ethernet, IP and ports of the answer; the cause may be overwritten. @return the L4 header.
std::uint8_t* write_answer(const std::uint8_t* cause, const ParsedFrame& frame, std::uint8_t* out,
                           std::uint32_t l4_length) noexcept {
  const MacAddress eth_dst = MacAddress::load(cause + 6);
  const MacAddress eth_src = MacAddress::load(cause);
  std::uint8_t* l4 =
      out + write_frame_headers(out, eth_dst, eth_src, answer_header(frame), l4_length);
  const bool v4 = frame.family == Family::kIpv4;
  (v4 ? frame.key4.dport : frame.key6.dport).store(l4);
  (v4 ? frame.key4.sport : frame.key6.sport).store(l4 + 2);
  return l4;
}

/// Octets of sequence space the segment takes: payload, SYN and FIN.
std::uint32_t segment_length(const std::uint8_t* tcp, const ParsedFrame& frame) noexcept {
  const std::uint32_t payload = frame.l4_length() - (tcp[12] >> 4) * 4u;
  return payload + ((frame.tcp_flags & kTcpSyn) != 0) + ((frame.tcp_flags & kTcpFin) != 0);
}

bool is_whole_flow(const ParsedFrame& frame, std::uint8_t protocol) noexcept {
  return (frame.kind == FrameKind::kFlow4 || frame.kind == FrameKind::kFlow6) &&
         frame.protocol == protocol;
}

}  // namespace

std::uint32_t build_tcp_reset(const std::uint8_t* cause, const ParsedFrame& frame,
                              std::uint8_t* out, std::uint32_t capacity) noexcept {
  const std::uint32_t length = kEthernetLength + ip_header_length(frame.family) + kTcpHeaderLength;
  if (!is_whole_flow(frame, kIpProtoTcp) || (frame.tcp_flags & kTcpRst) != 0 ||
      !may_answer_with_error(cause, frame) || capacity < length) {
    return 0;
  }
  const std::uint8_t* tcp = cause + frame.l4_offset;
  const bool acked = (frame.tcp_flags & kTcpAck) != 0;
  const std::uint32_t seq = acked ? load_be32(tcp + 8) : 0;
  const std::uint32_t ack = acked ? 0 : load_be32(tcp + 4) + segment_length(tcp, frame);
  std::uint8_t* reset = write_answer(cause, frame, out, kTcpHeaderLength);
  store_be32(reset + 4, seq);
  store_be32(reset + 8, ack);
  reset[12] = kTcpHeaderLength / 4 << 4;
  reset[13] = acked ? kTcpRst : kTcpRst | kTcpAck;
  std::memset(reset + 14, 0, 6);  // window, checksum, urgent pointer
  write_l4_checksum(reset, answer_header(frame), kTcpHeaderLength);
  return length;
}

namespace {

constexpr std::uint32_t kSctpChunkHeader = 4;

/// What to answer an out-of-the-blue SCTP packet with.
struct AbortTag {
  bool answer = false;
  bool reflected = false;  ///< T bit
  std::uint8_t bytes[4] = {};
};

AbortTag abort_tag(const std::uint8_t* sctp, std::uint32_t readable) noexcept {
  constexpr std::uint8_t kInit = 1;
  constexpr std::uint8_t kAbort = 6;
  constexpr std::uint8_t kError = 9;
  constexpr std::uint8_t kCookieAck = 11;
  constexpr std::uint8_t kShutdownComplete = 14;
  AbortTag tag;
  if (readable < kSctpHeaderLength + kSctpChunkHeader) {
    return tag;
  }
  const std::uint8_t type = sctp[kSctpHeaderLength];
  if (type == kAbort || type == kError || type == kCookieAck || type == kShutdownComplete) {
    return tag;
  }
  const std::uint8_t* from = sctp + 4;  // verification tag
  if (type == kInit) {
    if (readable < kSctpHeaderLength + kSctpChunkHeader + 4) {
      return tag;
    }
    from = sctp + kSctpHeaderLength + kSctpChunkHeader;  // initiate tag
  }
  tag.answer = true;
  tag.reflected = type != kInit;
  std::memcpy(tag.bytes, from, sizeof tag.bytes);
  return tag;
}

}  // namespace

std::uint32_t build_sctp_abort(const std::uint8_t* cause, std::uint32_t contiguous,
                               const ParsedFrame& frame, std::uint8_t* out,
                               std::uint32_t capacity) noexcept {
  constexpr std::uint8_t kAbort = 6;
  constexpr std::uint32_t kAbortLength = kSctpHeaderLength + kSctpChunkHeader;
  const std::uint32_t length = kEthernetLength + ip_header_length(frame.family) + kAbortLength;
  if (!is_whole_flow(frame, kIpProtoSctp) || !may_answer_with_error(cause, frame) ||
      capacity < length) {
    return 0;
  }
  const std::uint32_t readable = std::min(frame.l4_length(), contiguous - frame.l4_offset);
  const AbortTag tag = abort_tag(cause + frame.l4_offset, readable);
  if (!tag.answer) {
    return 0;
  }
  std::uint8_t* abort = write_answer(cause, frame, out, kAbortLength);
  std::memcpy(abort + 4, tag.bytes, sizeof tag.bytes);
  std::uint8_t* chunk = abort + kSctpHeaderLength;
  chunk[0] = kAbort;
  chunk[1] = tag.reflected ? 1 : 0;
  store_be16(chunk + 2, kSctpChunkHeader);
  const std::uint32_t crc = sctp_crc(abort, kAbortLength);
  std::memcpy(abort + kSctpCrcOffset, &crc, sizeof crc);
  return length;
}

std::uint32_t build_reject(const std::uint8_t* cause, std::uint32_t contiguous,
                           const ParsedFrame& frame, std::uint8_t* out,
                           std::uint32_t capacity) noexcept {
  if (is_whole_flow(frame, kIpProtoTcp)) {
    return build_tcp_reset(cause, frame, out, capacity);
  }
  if (is_whole_flow(frame, kIpProtoSctp)) {
    return build_sctp_abort(cause, contiguous, frame, out, capacity);
  }
  if (!may_answer_with_error(cause, frame)) {
    return 0;
  }
  return build_icmp_error(cause, contiguous, frame,
                          {IcmpErrorKind::kPortUnreachable, frame.dst(), 0}, out, capacity);
}

}  // namespace sluice::core
