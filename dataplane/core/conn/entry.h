#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

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

/// The same for IPv6, in two lines: both keys and both translations are more than one.
struct alignas(64) HotEntry6 {
  Ipv6Address vip;
  Ipv6Address backend;
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
  EntryIndex list_next;
  // second line
  Ipv6Address client;
  Ipv6Address snat;
  ServiceSlot service;
  EndpointId endpoint;
  std::uint8_t zero[24];
};
static_assert(sizeof(HotEntry6) == 128 && offsetof(HotEntry6, client) == 64);

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

namespace detail {

/// Entries of both families have their ports alike: client, VIP, backend, source of fullnat.
/// @return 0: they are the key's.
template <class Hot, class Key>
[[nodiscard, gnu::always_inline]] inline std::uint64_t ports_and_protocol_differ(
    const Hot& e, std::size_t reply, const Key& key) noexcept {
  static_assert(offsetof(Hot, vip_port) == offsetof(Hot, client_port) + 2 &&
                offsetof(Hot, backend_port) == offsetof(Hot, client_port) + 4 &&
                offsetof(Hot, snat_port) == offsetof(Hot, client_port) + 6 &&
                offsetof(Key, dport) == offsetof(Key, sport) + 2);
  std::uint32_t ports[2];
  const auto* own = reinterpret_cast<const std::uint8_t*>(&e) + offsetof(Hot, client_port);
  std::memcpy(&ports[0], own + reply * 4, 4);
  std::memcpy(&ports[1], reinterpret_cast<const std::uint8_t*>(&key) + offsetof(Key, sport), 4);
  return (ports[0] ^ ports[1]) | static_cast<std::uint32_t>(e.proto ^ key.proto);
}

/// @return 0: 16 bytes are the same.
[[nodiscard, gnu::always_inline]] inline std::uint64_t differ16(const std::uint8_t* a,
                                                                const std::uint8_t* b) noexcept {
  std::uint64_t left[2];
  std::uint64_t right[2];
  std::memcpy(left, a, 16);
  std::memcpy(right, b, 16);
  return (left[0] ^ right[0]) | (left[1] ^ right[1]);
}

}  // namespace detail

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

/// Is `key` the key of this direction? What forward_key() or reply_key() == key says, without a
/// branch on the direction: it alternates from packet to packet.
[[nodiscard, gnu::always_inline]] inline bool has_key(const HotEntry4& e, Direction d,
                                                      const FlowKey4& key) noexcept {
  static_assert(offsetof(HotEntry4, vip) == 4 && offsetof(HotEntry4, backend) == 8 &&
                offsetof(HotEntry4, snat) == 12 && offsetof(FlowKey4, sport) == 8);
  const auto reply = static_cast<std::size_t>(d);
  const auto* entry = reinterpret_cast<const std::uint8_t*>(&e);
  const auto* wanted = reinterpret_cast<const std::uint8_t*>(&key);
  std::uint64_t addresses[2];
  std::memcpy(&addresses[0], entry + reply * 8, 8);
  std::memcpy(&addresses[1], wanted, 8);
  return ((addresses[0] ^ addresses[1]) | detail::ports_and_protocol_differ(e, reply, key)) == 0;
}
[[nodiscard, gnu::always_inline]] inline bool has_key(const HotEntry6& e, Direction d,
                                                      const FlowKey6& key) noexcept {
  const auto reply = static_cast<std::size_t>(d);
  const auto* entry = reinterpret_cast<const std::uint8_t*>(&e);
  constexpr std::size_t kSrc[2] = {offsetof(HotEntry6, client), offsetof(HotEntry6, backend)};
  constexpr std::size_t kDst[2] = {offsetof(HotEntry6, vip), offsetof(HotEntry6, snat)};
  return (detail::differ16(entry + kSrc[reply], key.src.bytes.data()) |
          detail::differ16(entry + kDst[reply], key.dst.bytes.data()) |
          detail::ports_and_protocol_differ(e, reply, key)) == 0;
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
inline constexpr std::uint8_t kEntryOtherFamily = 32;  ///< ipip across families: see set_backend()

/// Where an IPv6 backend of an IPv4 flow lies: over `backend` and `snat`, and over the last two
/// ports and the deltas. A packet that is not translated needs none of these.
inline constexpr std::size_t kBackend6High = offsetof(HotEntry4, backend);
inline constexpr std::size_t kBackend6Low = offsetof(HotEntry4, backend_port);
static_assert(offsetof(HotEntry4, client_port) == kBackend6High + 8 &&
              offsetof(HotEntry4, last_seen) == kBackend6Low + 8);

/// Names the backend of an entry of mode dr or ipip; it may be of the other family.
inline void set_backend(HotEntry4& e, const IpAddress& backend) noexcept {
  auto* bytes = reinterpret_cast<std::uint8_t*>(&e);
  if (backend.is_v4()) {
    e.backend = backend.v4();
    return;
  }
  std::memcpy(bytes + kBackend6High, backend.data(), 8);
  std::memcpy(bytes + kBackend6Low, backend.data() + 8, 8);
  e.flags |= kEntryOtherFamily;
}
inline void set_backend(HotEntry6& e, const IpAddress& backend) noexcept {
  std::memcpy(e.backend.bytes.data(), backend.data(), 16);
  e.flags = static_cast<std::uint8_t>(backend.is_v4() ? e.flags | kEntryOtherFamily
                                                      : e.flags & ~kEntryOtherFamily);
}

/// The backend of any entry.
[[nodiscard]] inline IpAddress backend_of(const HotEntry4& e) noexcept {
  if ((e.flags & kEntryOtherFamily) == 0) {
    return IpAddress(e.backend);
  }
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&e);
  Ipv6Address address;
  std::memcpy(address.bytes.data(), bytes + kBackend6High, 8);
  std::memcpy(address.bytes.data() + 8, bytes + kBackend6Low, 8);
  return IpAddress(address);
}
[[nodiscard]] inline IpAddress backend_of(const HotEntry6& e) noexcept {
  return (e.flags & kEntryOtherFamily) == 0 ? IpAddress(e.backend)
                                            : IpAddress(Ipv4Address::load(e.backend.bytes.data()));
}
/// In dr and ipip the port is the frontend's: nothing maps it.
template <class Hot>
[[nodiscard]] Be16 backend_port_of(const Hot& e) noexcept {
  return sees_replies(e.mode) ? e.backend_port : e.vip_port;
}

/// Cold part: read at creation, expiry and by dumps only.
struct ColdEntry {
  std::uint64_t created_ns = 0;       ///< monotonic
  EntryIndex list_prev = EntryIndex::kNone;
  Tick held_until = 0;                ///< the source port may not be taken before; set at close
  std::uint32_t forward_hash = 0;     ///< of its keys, for the index
  std::uint32_t reply_hash = 0;
};
static_assert(sizeof(ColdEntry) == 24);

}  // namespace sluice::core
