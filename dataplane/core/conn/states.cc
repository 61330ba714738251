#include "dataplane/core/conn/states.h"

namespace sluice::core {
namespace {

ConnState next_tcp(ConnState state, Direction direction, std::uint8_t signal, bool replies_seen,
                   std::uint8_t& flags) noexcept {
  if (in_states(state, kFinishedStates) || state == ConnState::kPending) {
    return state;
  }
  if ((signal & kTcpRst) != 0) {
    return ConnState::kClosed;
  }
  if ((signal & kTcpFin) != 0) {
    const bool from_backend = direction == Direction::kReply;
    if (from_backend && (flags & kEntryFinForward) == 0) {
      flags |= kEntryBackendClosedFirst;
    }
    flags |= from_backend ? kEntryFinReply : kEntryFinForward;
    constexpr std::uint8_t kBoth = kEntryFinForward | kEntryFinReply;
    return (flags & kBoth) == kBoth ? ConnState::kTimeWait : ConnState::kFinWait;
  }
  const bool syn = (signal & kTcpSyn) != 0;
  const bool ack = (signal & kTcpAck) != 0;
  if (state == ConnState::kSynSent) {
    if (direction == Direction::kReply) {
      return syn && ack ? ConnState::kSynReceived : state;
    }
    return !replies_seen && ack && !syn ? ConnState::kEstablished : state;
  }
  if (state == ConnState::kSynReceived) {
    const bool client_acks = direction == Direction::kForward && ack && !syn;
    return client_acks ? ConnState::kEstablished : state;
  }
  return state;
}

ConnState next_udp(ConnState state, Direction direction, bool replies_seen) noexcept {
  if (state != ConnState::kUdpNew) {
    return state;
  }
  // Where answers are not seen a second datagram is all there is to go by.
  return direction == Direction::kReply || !replies_seen ? ConnState::kUdpStream : state;
}

ConnState next_sctp(ConnState state, Direction direction, std::uint8_t signal,
                    bool replies_seen) noexcept {
  if (state == ConnState::kSctpShutdown || state == ConnState::kHeld) {
    return state;
  }
  if ((signal & (kTcpFin | kTcpRst)) != 0) {
    return ConnState::kSctpShutdown;
  }
  const bool answered = direction == Direction::kReply || !replies_seen;
  return state == ConnState::kSctpInit && answered ? ConnState::kSctpEstablished : state;
}

}  // namespace

ConnState next_state(ConnState state, Direction direction, std::uint8_t signal, bool replies_seen,
                     std::uint8_t& flags) noexcept {
  switch (state) {
    case ConnState::kUdpNew:
    case ConnState::kUdpStream:
      return next_udp(state, direction, replies_seen);
    case ConnState::kSctpInit:
    case ConnState::kSctpEstablished:
    case ConnState::kSctpShutdown:
      return next_sctp(state, direction, signal, replies_seen);
    default:
      return next_tcp(state, direction, signal, replies_seen, flags);
  }
}

std::string_view state_name(ConnState state) noexcept {
  static constexpr std::array<std::string_view, kConnStates> kNames = {
      "free",      "pending",          "syn_sent",      "syn_received", "established",
      "fin_wait",  "time_wait",        "closed",        "udp_new",      "udp_stream",
      "sctp_init", "sctp_established", "sctp_shutdown", "held"};
  return kNames[static_cast<std::size_t>(state)];
}

}  // namespace sluice::core
