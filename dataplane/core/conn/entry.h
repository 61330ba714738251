#pragma once

#include <cstddef>
#include <cstdint>

#include "dataplane/core/fwd/forwarding_table.h"
#include "dataplane/core/net/flow_key.h"

namespace sluice::core {

/// Index of a connection entry in its worker's array of that family.
enum class EntryIndex : std::uint32_t { kNone = 0xffffffff };
/// Which key of the entry matched.
enum class Direction : std::uint8_t { kForward = 0, kReply = 1 };

/// States of a connection as this node sees it; protocol decides which occur. Time-outs per state
/// are in ConnTimeouts (states.h).
enum class ConnState : std::uint8_t {
  kFree,
  kPending,      ///< waits for an answer of the affinity home worker
  kSynSent,      ///< TCP: SYN seen; UDP never
  kSynReceived,  ///< TCP: SYN-ACK seen
  kEstablished,  ///< TCP: handshake done
  kFinWait,      ///< TCP: one side sent FIN
  kTimeWait,     ///< TCP: both sides sent FIN
  kClosed,       ///< TCP: RST
  kUdpNew,       ///< UDP: only the client has sent
  kUdpStream,    ///< UDP: both sides have sent
  kSctpInit,
  kSctpEstablished,
  kSctpShutdown,
  kHeld,         ///< idled out, but its source port stays held (design section 5)
};
inline constexpr std::size_t kConnStates = 14;

/// Coarse time on the fast path: monotonic nanoseconds >> 20 (1.05 ms), wraps after 52 days and is
/// compared by difference.
using Tick = std::uint32_t;
inline constexpr unsigned kTickShift = 20;

/// Index into the next-hop array; stable while used.
enum class NextHopIndex : std::uint16_t { kNone = 0xffff };

/// Hot part of an IPv4 connection: one cache line, enough to forward either direction. No
/// pointers. The forward key is {client, vip}, the reply key {backend, snat}.
struct alignas(64) HotEntry4 {
  Ipv4Address client;
  Ipv4Address vip;
  Ipv4Address backend;
  Ipv4Address snat;         ///< == client in nat mode
  Be16 client_port;
  Be16 vip_port;
  Be16 backend_port;
  Be16 snat_port;           ///< == client_port in nat mode
  std::uint16_t l3_delta;   ///< raw ChecksumDelta of the IPv4 header, forward direction
  std::uint16_t l4_delta;   ///< of the L4 checksum (pseudo-header and ports)
  Tick last_seen;
  std::uint32_t epoch;      ///< at which it was last judged
  NextHopIndex to_backend;
  NextHopIndex to_client;
  ConnState state;
  std::uint8_t proto;
  ForwardingMode mode;
  std::uint8_t flags;       ///< kEntry...
  ServiceSlot service;
  EndpointId endpoint;
  EntryIndex list_next;     ///< in the list of its state, or in the free list
};
static_assert(sizeof(HotEntry4) == 64);

struct alignas(64) HotEntry6 {
  Ipv6Address client;
  Ipv6Address vip;
  Ipv6Address backend;
  Ipv6Address snat;
  // second line
  Be16 client_port;
  Be16 vip_port;
  Be16 backend_port;
  Be16 snat_port;
  std::uint16_t l3_delta;   ///< unused: IPv6 has no header checksum
  std::uint16_t l4_delta;
  Tick last_seen;
  std::uint32_t epoch;
  NextHopIndex to_backend;
  NextHopIndex to_client;
  ConnState state;
  std::uint8_t proto;
  ForwardingMode mode;
  std::uint8_t flags;
  ServiceSlot service;
  EndpointId endpoint;
  EntryIndex list_next;
  std::uint8_t zero[24];
};
static_assert(sizeof(HotEntry6) == 128);

template <class F>
struct HotEntryOf;
template <>
struct HotEntryOf<Ipv4> {
  using type = HotEntry4;
};
template <>
struct HotEntryOf<Ipv6> {
  using type = HotEntry6;
};

/// The key a packet of the client has.
template <class F>
[[nodiscard]] typename F::Key forward_key(const typename HotEntryOf<F>::type& e) noexcept {
  return {e.client, e.vip, e.client_port, e.vip_port, e.proto, {}};
}
/// The key a packet of the backend has.
template <class F>
[[nodiscard]] typename F::Key reply_key(const typename HotEntryOf<F>::type& e) noexcept {
  return {e.backend, e.snat, e.backend_port, e.snat_port, e.proto, {}};
}
/// In these modes the answers do not pass this node: there is no reply key, and states advance by
/// what the client sends alone.
[[nodiscard]] constexpr bool sees_replies(ForwardingMode mode) noexcept {
  return mode != ForwardingMode::kDr && mode != ForwardingMode::kIpip;
}

inline constexpr std::uint8_t kEntryFinForward = 1;   ///< client sent FIN
inline constexpr std::uint8_t kEntryFinReply = 2;     ///< backend sent FIN
inline constexpr std::uint8_t kEntryBackendClosedFirst = 4;
inline constexpr std::uint8_t kEntrySnatPort = 8;     ///< holds a port of the source pool
inline constexpr std::uint8_t kEntryDetached = 16;    ///< Service or endpoint left; idles out

/// Cold part: read at creation, expiry and by dumps only.
struct alignas(32) ColdEntry {
  std::uint64_t created_ns = 0;       ///< monotonic
  EntryIndex list_prev = EntryIndex::kNone;
  std::uint32_t generation = 0;       ///< counts reuses of this index: dumps and hand-overs check it
  Tick held_until = 0;                ///< the source port may not be taken before; set at close
  std::uint32_t reserved[3] = {};
};
static_assert(sizeof(ColdEntry) == 32);

}  // namespace sluice::core
