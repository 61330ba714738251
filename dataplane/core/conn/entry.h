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

/// Hot part of a connection, enough to forward either direction: one cache line (IPv6: two), no
/// pointers. Of the keys in the index these are copies, by the direction whose packets have them:
/// kForward {client, vip}, kReply {backend, snat}, where snat is the client in mode nat. Of modes
/// dr and ipip, which have no reply key, the second one holds the backend's address: backend_of().
template <class F>
struct alignas(64) HotEntry {
  typename F::Key keys[2];
  std::uint16_t l3_delta;   ///< raw ChecksumDelta of the IPv4 header, forward direction
  std::uint16_t l4_delta;   ///< of the L4 checksum (pseudo-header and ports)
  Tick last_seen;
  std::uint32_t epoch;      ///< at which it was last judged
  NextHopIndex to_backend;
  NextHopIndex to_client;
  ConnState state;
  ForwardingMode mode;
  std::uint8_t flags;       ///< kEntry...
  ServiceSlot service;
  EndpointId endpoint;
  EntryIndex list_next;     ///< in the list of its state, or in the free list

  [[nodiscard]] const auto& key(Direction d) const noexcept {
    return keys[static_cast<std::size_t>(d)];
  }
  [[nodiscard]] const auto& forward() const noexcept { return keys[0]; }
  [[nodiscard]] const auto& reply() const noexcept { return keys[1]; }
  [[nodiscard]] const auto& client() const noexcept { return keys[0].src; }
  [[nodiscard]] const auto& vip() const noexcept { return keys[0].dst; }
  [[nodiscard]] std::uint8_t proto() const noexcept { return keys[0].proto; }
};
static_assert(sizeof(HotEntry<Ipv4>) == 64 && sizeof(HotEntry<Ipv6>) == 128);

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

/// Names the backend of an entry of mode dr or ipip; it may be of the other family.
template <class F>
void set_backend(HotEntry<F>& e, const IpAddress& backend) noexcept {
  const bool other = backend.family() != F::kFamily;
  std::memcpy(&e.keys[1], backend.data(), backend.is_v4() ? 4 : 16);
  e.flags = static_cast<std::uint8_t>(other ? e.flags | kEntryOtherFamily
                                            : e.flags & ~kEntryOtherFamily);
}

/// The backend of any entry.
template <class F>
[[nodiscard]] IpAddress backend_of(const HotEntry<F>& e) noexcept {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&e.keys[1]);
  static_assert(offsetof(FlowKey4, src) == 0 && offsetof(FlowKey6, src) == 0);
  const bool v4 = (F::kFamily == Family::kIpv4) != ((e.flags & kEntryOtherFamily) != 0);
  return v4 ? IpAddress(Ipv4Address::load(bytes)) : IpAddress(Ipv6Address::load(bytes));
}
/// In dr and ipip the port is the frontend's: nothing maps it.
template <class Hot>
[[nodiscard]] Be16 backend_port_of(const Hot& e) noexcept {
  return sees_replies(e.mode) ? e.reply().sport : e.forward().dport;
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
