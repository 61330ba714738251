#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "dataplane/core/conn/entry.h"
#include "dataplane/core/net/parse.h"
#include "dataplane/core/net/sctp_signal.h"

namespace sluice::core {

// Theory of operation
//
// The state of a connection is what this node has seen of it; sequence numbers are not checked, so
// a packet is never refused for its state. One transition function serves all protocols: a protocol
// speaks in signals (the TCP flag bits; sctp_signal() maps chunk types on them). A packet without
// FIN, SYN or RST in a steady state changes nothing but the time: that is the fast path, one branch.
//
//   TCP   SynSent -SYN+ACK (reply)-> SynReceived -ACK (forward)-> Established
//         -FIN-> FinWait -FIN of the other side-> TimeWait;   RST anywhere -> Closed
//   UDP   UdpNew -reply-> UdpStream
//   SCTP  SctpInit -reply-> SctpEstablished -SHUTDOWN or ABORT-> SctpShutdown
//
// Where answers pass by another way (dr, ipip) the client's ACK alone establishes.
//
// States fall into three groups: half-open (limited to a share of the table, first victims),
// steady (never a victim, found by the sweep), closing (later victims). Half-open and closing
// states each have a first-in-first-out list.

[[nodiscard]] constexpr std::uint32_t state_bit(ConnState s) noexcept {
  return 1u << static_cast<unsigned>(s);
}
inline constexpr std::uint32_t kHalfOpenStates =
    state_bit(ConnState::kPending) | state_bit(ConnState::kSynSent) |
    state_bit(ConnState::kSynReceived) | state_bit(ConnState::kUdpNew) |
    state_bit(ConnState::kSctpInit);
inline constexpr std::uint32_t kSteadyStates = state_bit(ConnState::kEstablished) |
                                               state_bit(ConnState::kUdpStream) |
                                               state_bit(ConnState::kSctpEstablished);
/// Over for both sides: a SYN starts anew, a reply clash takes the place.
inline constexpr std::uint32_t kFinishedStates =
    state_bit(ConnState::kTimeWait) | state_bit(ConnState::kClosed) |
    state_bit(ConnState::kSctpShutdown) | state_bit(ConnState::kHeld);
inline constexpr std::uint32_t kClosingStates =
    kFinishedStates | state_bit(ConnState::kFinWait);
inline constexpr std::uint32_t kListedStates = kHalfOpenStates | kClosingStates;

[[nodiscard]] constexpr bool in_states(ConnState s, std::uint32_t set) noexcept {
  return (set >> static_cast<unsigned>(s) & 1) != 0;
}

/// "established", "syn_sent", ...: for dumps.
[[nodiscard]] std::string_view state_name(ConnState state) noexcept;

/// Whole ticks that hold `milliseconds`, rounded up. Range: up to 26 days, clamped.
[[nodiscard]] constexpr Tick ticks_of_ms(std::uint64_t milliseconds) noexcept {
  constexpr std::uint64_t kMax = 0x7fffffff;
  const std::uint64_t capped = milliseconds < kMax ? milliseconds : kMax;
  const std::uint64_t ticks = (capped * 1'000'000 + (1u << kTickShift) - 1) >> kTickShift;
  return static_cast<Tick>(ticks < kMax ? ticks : kMax);
}
[[nodiscard]] constexpr Tick tick_of_ns(std::uint64_t monotonic_ns) noexcept {
  return static_cast<Tick>(monotonic_ns >> kTickShift);
}

/// Idle time-outs by state, in ticks. Source of the defaults: IPVS (established 15 min, FIN_WAIT
/// 2 min, CLOSE 10 s, UDP 5 min, SYN_RECV 1 min); TIME_WAIT is the 60 s that a source port is held.
struct ConnTimeouts {
  std::array<Tick, kConnStates> of{};
  [[nodiscard]] constexpr Tick& operator[](ConnState s) noexcept {
    return of[static_cast<std::size_t>(s)];
  }
  [[nodiscard]] constexpr Tick operator[](ConnState s) const noexcept {
    return of[static_cast<std::size_t>(s)];
  }
  constexpr ConnTimeouts() noexcept {
    constexpr std::uint64_t kSecond = 1000;
    (*this)[ConnState::kPending] = ticks_of_ms(1 * kSecond);
    (*this)[ConnState::kSynSent] = ticks_of_ms(60 * kSecond);
    (*this)[ConnState::kSynReceived] = ticks_of_ms(60 * kSecond);
    (*this)[ConnState::kEstablished] = ticks_of_ms(900 * kSecond);
    (*this)[ConnState::kFinWait] = ticks_of_ms(120 * kSecond);
    (*this)[ConnState::kTimeWait] = ticks_of_ms(60 * kSecond);
    (*this)[ConnState::kClosed] = ticks_of_ms(10 * kSecond);
    (*this)[ConnState::kUdpNew] = ticks_of_ms(60 * kSecond);
    (*this)[ConnState::kUdpStream] = ticks_of_ms(300 * kSecond);
    (*this)[ConnState::kSctpInit] = ticks_of_ms(30 * kSecond);
    (*this)[ConnState::kSctpEstablished] = ticks_of_ms(900 * kSecond);
    (*this)[ConnState::kSctpShutdown] = ticks_of_ms(30 * kSecond);
    (*this)[ConnState::kHeld] = ticks_of_ms(60 * kSecond);
  }
};

/// State of a connection that its first packet (from the client) makes.
[[nodiscard]] constexpr ConnState initial_state(std::uint8_t proto) noexcept {
  return proto == static_cast<std::uint8_t>(Protocol::kTcp)   ? ConnState::kSynSent
         : proto == static_cast<std::uint8_t>(Protocol::kUdp) ? ConnState::kUdpNew
                                                              : ConnState::kSctpInit;
}

/// What a packet makes of a connection. `flags` gains kEntryFin... and kEntryBackendClosedFirst.
/// @param replies_seen  sees_replies(entry.mode)
[[nodiscard]] ConnState next_state(ConnState state, Direction direction, std::uint8_t signal,
                                   bool replies_seen, std::uint8_t& flags) noexcept;

/// True when a packet in this state can change nothing but the time.
[[nodiscard]] constexpr bool is_steady(ConnState state, std::uint8_t signal) noexcept {
  return in_states(state, kSteadyStates) && (signal & (kTcpFin | kTcpSyn | kTcpRst)) == 0;
}

/// A packet that asks for a connection: SYN or INIT, and no reset beside it.
[[nodiscard]] constexpr bool is_opening(std::uint8_t signal) noexcept {
  return (signal & (kTcpSyn | kTcpAck | kTcpRst)) == kTcpSyn;
}

/// A new connection may take over this one's key: a SYN (INIT) from the client that meets one that
/// is over. The caller removes the entry, schedules anew and forwards that same packet (F4, F19).
[[nodiscard]] constexpr bool reusable_by(ConnState state, std::uint8_t signal,
                                         bool replies_seen) noexcept {
  const std::uint32_t over = replies_seen ? kFinishedStates : kClosingStates;
  return is_opening(signal) && in_states(state, over);
}

}  // namespace sluice::core
