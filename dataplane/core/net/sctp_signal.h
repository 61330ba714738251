#pragma once

#include <cstdint>

#include "dataplane/core/net/parse.h"

namespace sluice::core {

/// The signal of an SCTP packet, by the type of its first chunk, in TCP's bits: INIT is SYN, INIT
/// ACK is SYN|ACK, cookies are ACK, ABORT is RST, the SHUTDOWN chunks are FIN, all else is 0.
/// Source: RFC 9260 section 3.2.
[[nodiscard]] constexpr std::uint8_t sctp_signal(std::uint8_t first_chunk_type) noexcept {
  switch (first_chunk_type) {
    case 1:  // INIT
      return kTcpSyn;
    case 2:  // INIT ACK
      return kTcpSyn | kTcpAck;
    case 10:  // COOKIE ECHO
    case 11:  // COOKIE ACK
      return kTcpAck;
    case 6:  // ABORT
      return kTcpRst;
    case 7:   // SHUTDOWN
    case 8:   // SHUTDOWN ACK
    case 14:  // SHUTDOWN COMPLETE
      return kTcpFin;
    default:
      return 0;
  }
}

}  // namespace sluice::core
