#pragma once

// Answers that refuse a packet (N-1): the sender learns at once that nobody serves it. TCP gets a
// reset, SCTP an abort, everything else an ICMP port unreachable, all in the name of the address
// that was asked. The answer is a frame that goes back where the packet came from.

#include <cstdint>

#include "dataplane/core/net/icmp.h"
#include "dataplane/core/net/parse.h"

namespace sluice::core {

/// A reset as the closed port would send it: for a segment with ACK, sequence number = its
/// acknowledgement; else RST|ACK that acknowledges the segment (RFC 9293 3.10.7.1). Never about a
/// reset. `out` may be `cause`.
/// @return frame length (54 or 74); 0: no reset may be sent, or `capacity` is too small.
[[nodiscard]] std::uint32_t build_tcp_reset(const std::uint8_t* cause, const ParsedFrame& frame,
                                            std::uint8_t* out, std::uint32_t capacity) noexcept;

/// An SCTP ABORT about an out-of-the-blue packet (RFC 9260 8.4): tag of the INIT, or the packet's
/// own tag reflected (T bit). Never about ABORT, SHUTDOWN COMPLETE, COOKIE ACK or ERROR.
/// @param contiguous  bytes readable at `cause`. `out` may be `cause`.
/// @return frame length; 0: none may be sent, or `capacity` is too small.
[[nodiscard]] std::uint32_t build_sctp_abort(const std::uint8_t* cause, std::uint32_t contiguous,
                                             const ParsedFrame& frame, std::uint8_t* out,
                                             std::uint32_t capacity) noexcept;

/// The refusal that fits the packet. `out` may be `cause`.
/// @param capacity  bytes at `out`; kMaxIcmpErrorFrame is always enough.
/// @return frame length; 0: silence (see may_answer_with_error and above).
[[nodiscard]] std::uint32_t build_reject(const std::uint8_t* cause, std::uint32_t contiguous,
                                         const ParsedFrame& frame, std::uint8_t* out,
                                         std::uint32_t capacity) noexcept;

}  // namespace sluice::core
