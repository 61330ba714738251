#pragma once

// rx_partial_csum (design section 5): a kernel sender with checksum offload leaves the L4 checksum
// unfinished, and a port fed by a kernel (af_packet, af_xdp, tap) delivers it like that, unmarked:
// TCP and UDP hold the bare pseudo-header sum, SCTP holds zero. Such frames are completed on
// receipt, before anything else sees them.
//
// A finished checksum equals the pseudo-header sum once in 65536 packets; completing it then writes
// the value it has. UDP 0 ("none") never looks unfinished: a pseudo-header never sums to zero.

#include <cstdint>

#include "dataplane/core/net/parse.h"

namespace sluice::core {

/// True when the frame (kFlow4/kFlow6; else false) carries an unfinished L4 checksum.
/// Cost: about 10 cycles. Thread: any.
[[nodiscard]] bool checksum_is_partial(const std::uint8_t* data, const ParsedFrame& frame) noexcept;

/// Completes it. Frames of any size the IP length can say (a whole GSO send, too).
/// Precondition: checksum_is_partial(), and the IP packet is contiguous.
void complete_checksum(std::uint8_t* data, const ParsedFrame& frame) noexcept;

/// The same for a TCP or UDP frame in segments.
/// @param l4_sum  SegmentedSum over the l4_length() bytes of the L4 header and payload as received.
void complete_checksum_from_sum(std::uint8_t* data, const ParsedFrame& frame,
                                std::uint64_t l4_sum) noexcept;

/// The same for an SCTP frame in segments.
/// @param state  crc32c_update() from ~0 over the same bytes as received (their CRC field is 0).
void complete_sctp_from_state(std::uint8_t* data, const ParsedFrame& frame,
                              std::uint32_t state) noexcept;

}  // namespace sluice::core
