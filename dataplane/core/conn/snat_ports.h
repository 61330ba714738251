#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "dataplane/core/conn/entry.h"
#include "dataplane/core/conn/key_index.h"
#include "dataplane/core/conn/states.h"
#include "dataplane/core/net/byte_order.h"

namespace sluice::core {

// Theory of operation
//
// A flow whose source is translated needs a port such that {backend, snat address, backend port,
// port} is no key of any connection. The pool is split in blocks over the workers, so that the port
// of a reply says which worker owns the flow and workers need not agree on anything. Within its
// share a worker asks its own connection table: a port is free when the reverse key is absent, so
// one port serves as many backends as there are, and nothing has to be given back (F15).
//
// A finished connection may still sit on a port. The client closed first: the backend remembers
// nothing, the port is as good as free and create() evicts the entry. The backend closed first, or
// nobody knows: the backend may hold the tuple in TIME_WAIT, the port is held 60 s and only taken
// when nothing else is left, longest held first.
//
// The search starts at a hash of the flow and goes once around, in bulk lookups of up to 32. After
// a search found nothing, searches for the same backend and address look at kRetryPorts ports each
// for kRetryTicks, each going on where the last one stopped: a full pool costs a bounded time a
// flow. After one that found only held ports it is the same, for as long as ports are held: each
// search takes the longest held of the next kHeldPorts, and since ports were taken in that order,
// that is the longest held of all, or nearly. (A backend that closes first, as HTTP servers without
// keep-alive do, holds a pool of 64,512 ports wholly from 1,075 connections a second on.)

/// A set of ports, in host order.
class PortSet {
 public:
  void insert(std::uint16_t port) noexcept { bits_[port / 64] |= bit(port); }
  void erase(std::uint16_t port) noexcept { bits_[port / 64] &= ~bit(port); }
  [[nodiscard]] bool contains(std::uint16_t port) const noexcept {
    return (bits_[port / 64] & bit(port)) != 0;
  }
  [[nodiscard]] std::size_t size() const noexcept;
  bool operator==(const PortSet&) const = default;

 private:
  static constexpr std::uint64_t bit(std::uint16_t port) noexcept {
    return std::uint64_t{1} << (port % 64);
  }
  std::array<std::uint64_t, 1024> bits_{};
};

/// Which worker owns which port of the pool. Immutable. Thread: any.
class PortOwners {
 public:
  static constexpr std::uint8_t kNoOwner = 0xff;
  static constexpr unsigned kMaxBlockShift = 9;  ///< blocks of 512 (design section 5)

  /// No pool: every owner is kNoOwner.
  PortOwners() noexcept;
  /// Blocks go round the workers. A pool too small for a block of 512 each gets smaller blocks,
  /// down to one port.
  /// @param first,last  host order, inclusive; first <= last.
  /// @param workers     1..64
  PortOwners(std::uint16_t first, std::uint16_t last, unsigned workers);

  /// @return kNoOwner for a port outside the pool.
  [[nodiscard]] std::uint8_t owner(std::uint16_t port) const noexcept {
    return port < first_ || port > last_ ? kNoOwner : block_owner_[port >> block_shift_];
  }
  [[nodiscard]] std::uint8_t owner(Be16 port) const noexcept { return owner(port.host()); }
  /// All ports of one worker, ascending.
  [[nodiscard]] std::vector<std::uint16_t> ports_of(unsigned worker) const;

 private:
  std::uint16_t first_ = 1;
  std::uint16_t last_ = 0;
  unsigned block_shift_ = kMaxBlockShift;
  std::vector<std::uint8_t> block_owner_;  ///< by port >> block_shift_
};

enum class PortResult : std::uint8_t {
  kFree,        ///< no connection has it, or one that is over and does not hold it
  kReusedHeld,  ///< only held ports were left: the longest held one (counted by the caller)
  kExhausted,   ///< every port is used by a live flow to this backend (counted by the caller)
};

struct PortChoice {
  PortResult result = PortResult::kExhausted;
  Be16 port;
  Tick held_for = 0;  ///< kReusedHeld: ticks it would still be held
};

/// Default of the preference hook: any port is as good as another.
struct NoPreference {
  constexpr bool operator()(std::uint16_t) const noexcept { return true; }
};

/// Port choice of one worker. Thread: the owner worker only; choose() does not allocate.
class SnatPorts {
 public:
  static constexpr std::uint32_t kLook = 32;          ///< ports of one bulk lookup
  static constexpr std::uint32_t kFirstLook = 4;      ///< mostly the first one is free
  static constexpr std::uint32_t kRetryPorts = 512;
  static constexpr Tick kRetryTicks = 16;
  static constexpr std::uint32_t kHeldPorts = 128;
  static constexpr Tick kHeldTicks = ticks_of_ms(60'000);  ///< as long as a port may be held

  explicit SnatPorts(std::vector<std::uint16_t> own_ports) : ports_(std::move(own_ports)) {}

  /// Finds a port for a new flow; create() with the reply key completed by it then evicts what
  /// may still sit there.
  /// @param table      a ConnTable of the flow's family.
  /// @param reply      {backend, snat address, backend port, -}: its dport is not read.
  /// @param flow_hash  of the forward key: where the search starts.
  /// @param excluded   ports never given: frontends, health ports, present sockets (F17).
  /// @param prefer     (port, host order) -> bool, e.g. whether the reply's RSS hash leads to this
  ///                   worker. Of the free ports seen together a preferred one wins.
  template <class Table, class Prefer = NoPreference>
  [[nodiscard]] PortChoice choose(Table& table, const typename Table::Key& reply,
                                  std::uint32_t flow_hash, const PortSet& excluded, Tick now,
                                  Prefer prefer = {}) noexcept;

  [[nodiscard]] std::size_t size() const noexcept { return ports_.size(); }
  /// Where a search for this hash begins. Precondition: size() != 0.
  [[nodiscard]] Be16 first_port(std::uint32_t flow_hash) const noexcept {
    return Be16::from_host(ports_[flow_hash % ports_.size()]);
  }
  /// One port, reply.dport: nobody uses or holds it.
  template <class Table>
  [[nodiscard]] static bool is_free(Table& table, const typename Table::Key& reply,
                                    const PortSet& excluded, Tick now) noexcept {
    if (excluded.contains(reply.dport.host())) {
      return false;
    }
    const auto found = table.find(reply);
    return !found || (table.is_finished(found.index) && table.hold_left(found.index, now) == 0);
  }

 private:
  /// A search that found no free port lately.
  struct Lately {
    std::uint32_t target = 0;  ///< hash of {backend, snat address, backend port}
    std::uint32_t cursor = 0;
    Tick at = 0;
    enum class Found : std::uint8_t { kUnused, kNothing, kHeld } found = Found::kUnused;
    /// Searches go on from `cursor`.
    [[nodiscard]] bool holds(std::uint32_t wanted, Tick now) const noexcept {
      return target == wanted && ((found == Found::kNothing && now - at < kRetryTicks) ||
                                  (found == Found::kHeld && now - at < kHeldTicks));
    }
  };
  struct Best {
    std::uint16_t port = 0;
    Tick held_for = 0;  ///< ticks left to hold
    bool found = false;
  };
  template <class Table, class Prefer>
  bool look(Table& table, const typename Table::Key& reply, std::uint32_t start,
            std::uint32_t count, const PortSet& excluded, Tick now, Prefer& prefer,
            std::uint16_t& free_port, Best& held) const noexcept;

  std::vector<std::uint16_t> ports_;
  std::array<Lately, 64> lately_{};
};

template <class Table, class Prefer>
PortChoice SnatPorts::choose(Table& table, const typename Table::Key& reply,
                             std::uint32_t flow_hash, const PortSet& excluded, Tick now,
                             Prefer prefer) noexcept {
  const auto total = static_cast<std::uint32_t>(ports_.size());
  if (total == 0) {
    return {};
  }
  typename Table::Key target = reply;
  target.dport = Be16{};
  const std::uint32_t target_hash = table.hash(target);
  Lately& lately = lately_[target_hash % lately_.size()];
  const bool retry = lately.holds(target_hash, now);
  const bool only_held = retry && lately.found == Lately::Found::kHeld;
  std::uint32_t cursor = retry ? lately.cursor : flow_hash % total;
  std::uint32_t batch = std::is_same_v<Prefer, NoPreference> ? kFirstLook : kLook;
  Best held;
  for (std::uint32_t seen = 0; seen < total;) {
    if (retry && (only_held ? seen >= kHeldPorts && held.found : seen >= kRetryPorts)) {
      break;
    }
    const std::uint32_t count = batch < total - seen ? batch : total - seen;
    std::uint16_t port = 0;
    if (look(table, reply, cursor, count, excluded, now, prefer, port, held)) {
      return {PortResult::kFree, Be16::from_host(port), 0};
    }
    seen += count;
    cursor = (cursor + count) % total;
    batch = kLook;
  }
  if (held.found) {
    lately = {target_hash, cursor, now, Lately::Found::kHeld};
    return {PortResult::kReusedHeld, Be16::from_host(held.port), held.held_for};
  }
  const bool again = retry && lately.found == Lately::Found::kNothing;
  lately = {target_hash, cursor, again ? lately.at : now, Lately::Found::kNothing};
  return {};
}

/// Looks at ports_[start, start + count), wrapping. @return true: `free_port` is set.
template <class Table, class Prefer>
bool SnatPorts::look(Table& table, const typename Table::Key& reply, std::uint32_t start,
                     std::uint32_t count, const PortSet& excluded, Tick now, Prefer& prefer,
                     std::uint16_t& free_port, Best& held) const noexcept {
  using Key = typename Table::Key;
  std::array<Key, kLook> keys;
  std::array<const Key*, kLook> pointers;
  std::array<std::uint32_t, kLook> hashes;
  std::array<KeyData, kLook> hits;
  std::uint32_t n = 0;
  for (std::uint32_t c = 0; c < count; ++c) {
    const std::uint16_t port = ports_[(start + c) % ports_.size()];
    if (!excluded.contains(port)) {
      keys[n] = reply;
      keys[n].dport = Be16::from_host(port);
      pointers[n] = &keys[n];
      hashes[n] = table.hash_ahead(keys[n]);
      ++n;
    }
  }
  const std::uint64_t known =
      n == 0 ? 0 : table.find_bulk(pointers.data(), hashes.data(), n, hits.data());
  bool found = false;
  for (std::uint32_t k = 0; k < n; ++k) {
    const std::uint16_t port = keys[k].dport.host();
    bool free = (known >> k & 1) == 0;
    if (!free && table.is_finished(hits[k].entry())) {
      const Tick left = table.hold_left(hits[k].entry(), now);
      free = left == 0;
      if (!free && (!held.found || left < held.held_for)) {
        held = {port, left, true};
      }
    }
    if (free) {
      if (prefer(port)) {
        free_port = port;
        return true;
      }
      free_port = found ? free_port : port;
      found = true;
    }
  }
  return found;
}

}  // namespace sluice::core
