#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <span>
#include <utility>

#include "dataplane/core/conn/entry.h"
#include "dataplane/core/conn/entry_list.h"
#include "dataplane/core/conn/flow_hash.h"
#include "dataplane/core/conn/key_index.h"
#include "dataplane/core/conn/sizing.h"
#include "dataplane/core/conn/states.h"

namespace sluice::core {

// Theory of operation
//
// One table per worker and family. Entries lie in two arrays (hot, cold) indexed by EntryIndex; the
// index maps both keys of a connection to (entry, direction). The entry has the keys too, so an
// established packet need not read the index's copy: find_likely() goes by the hash alone, and
// has_key() of the entry, whose line is needed anyway, shows whether it was right. Nearly always it
// was (16 bits of the hash are compared); else find() compares keys. Such a packet reads the bucket
// of the index, a word of 4 bytes that leads to the entry, and the entry.
//
// Life of an entry: create() takes a free index, inserts both keys and appends the entry to the
// list of its state. Half-open and closing states each have such a list, ordered by last_seen,
// because every packet moves its entry to the tail (once per tick): so the head is the first to
// expire and the oldest is a victim at once. Steady states are in no list; a sweep paced by the
// clock visits all entries within kSweepSeconds. Whatever ends an entry goes through one place,
// which erases the keys, tells the `Releaser`, and gives the index back (F15).
//
// Worked example, TCP nat: SYN creates entry 7, state kSynSent, list kSynSent. The SYN-ACK hits the
// reply key: list kSynReceived. The ACK: kEstablished, no list. FIN: list kFinWait, other FIN:
// kTimeWait, 60 s later (or when a SYN reuses the key, or the table is full) it is released.
//
// The free list is last-in-first-out through list_next; entries never used are counted by a
// watermark, so that start-up touches no memory.

/// Why an entry went.
enum class ReleaseReason : std::uint8_t {
  kExpired,          ///< idle longer than its time-out
  kEvictedHalfOpen,  ///< victim of a full table or of the half-open share
  kEvictedClosing,   ///< victim of a full table
  kReplyClash,       ///< was over, and a new flow needed its reply key (F22)
  kRemoved,          ///< remove(): the caller's reason
};

/// Is told of every entry that goes, before its index is given back: connection counts go down
/// there. Source ports need nothing: a port is free when its reverse key is absent.
template <class R, class F>
concept Releaser = requires(R r, EntryIndex i, const HotEntry<F>& hot,
                            const ColdEntry& cold, ReleaseReason why) {
  { r.released(i, hot, cold, why) } noexcept;
};

enum class CreateResult : std::uint8_t {
  kCreated,
  kFull,        ///< no victim: only steady flows are left, or the index found no place
  kReplyClash,  ///< the reply key is held by a live flow (CreateOutcome::index())
  kExists,      ///< the forward key is already there (CreateOutcome::index(), direction())
};

/// One word: of a struct of small parts GCC 12 writes each to memory and reads them back together,
/// which waits for the writes, 40 cycles a new flow.
class CreateOutcome {
 public:
  constexpr CreateOutcome(CreateResult result = CreateResult::kFull,
                          EntryIndex index = EntryIndex::kNone,
                          Direction direction = Direction::kForward) noexcept
      : raw_(static_cast<std::uint64_t>(index) << 32 | static_cast<std::uint64_t>(direction) << 8 |
             static_cast<std::uint64_t>(result)) {}
  [[nodiscard]] constexpr CreateResult result() const noexcept {
    return static_cast<CreateResult>(raw_ & 0xff);
  }
  [[nodiscard]] constexpr EntryIndex index() const noexcept {
    return static_cast<EntryIndex>(raw_ >> 32);
  }
  /// kExists: which key of it matched.
  [[nodiscard]] constexpr Direction direction() const noexcept {
    return static_cast<Direction>(raw_ >> 8 & 0xff);
  }

 private:
  std::uint64_t raw_;
};

/// What create() needs of a new connection; addresses and ports are in the keys.
template <class F>
struct NewConn {
  typename F::Key forward;            ///< {client, vip}
  std::uint32_t forward_hash = 0;     ///< ConnTable::hash(forward)
  typename F::Key reply;              ///< {backend, snat address or client}
  std::uint16_t l3_delta = 0;         ///< raw ChecksumDelta, forward direction
  std::uint16_t l4_delta = 0;
  std::uint32_t epoch = 0;
  NextHopIndex to_backend = NextHopIndex::kNone;
  NextHopIndex to_client = NextHopIndex::kNone;
  ForwardingMode mode = ForwardingMode::kNat;  ///< kNat, kFullNat, kDr or kIpip
  std::uint8_t flags = 0;             ///< kEntrySnatPort for a port of the pool
  ServiceSlot service = ServiceSlot::kNone;
  EndpointId endpoint = EndpointId::kNone;
  bool pending = false;               ///< starts in kPending (affinity home was asked)
  bool forward_is_absent = false;     ///< the caller has looked it up: never kExists
  std::optional<std::uint32_t> reply_hash;  ///< ConnTable::hash(reply); empty: to be made
};

/// How much a bulk lookup asks memory for at once; which serves best differs by core.
struct LookupPace {
  std::uint32_t group = kMaxBulk;    ///< keys, 1 or more: the entries of one group come while the
                                     ///< index is asked for the next
  std::uint32_t entries = kMaxBulk;  ///< of the first so many keys entries are asked for
};

struct ConnTableConfig {
  std::uint32_t capacity = 1'000'000;  ///< asked for; the table has rounded_capacity() of it
  std::uint64_t hash_seed = 0;         ///< random per start
  ConnTimeouts timeouts{};
  std::uint32_t half_open_divisor = 4;  ///< half-open entries may take capacity / this
};

/// Connections of one worker and family. Thread: the owner worker only. No call allocates, locks
/// or throws. `now` is the tick of the poll.
template <class F, KeyIndex<typename F::Key> Index>
class ConnTable {
 public:
  using Key = typename F::Key;
  using Hot = HotEntry<F>;
  static constexpr std::uint32_t kSweepSeconds = 8;
  static constexpr std::uint32_t kSweepBatch = 64;   ///< entries per expire() call
  /// List heads per expire() call: more than a poll can open.
  static constexpr std::uint32_t kExpireBatch = 2 * kMaxBulk;

  /// Bytes the caller provides for the entries (huge pages if it can).
  [[nodiscard]] static constexpr std::size_t memory_bytes(std::uint32_t capacity) noexcept {
    return entry_bytes<F>(rounded_capacity(capacity));
  }

  /// @param index   empty, with slots_for(capacity) slots.
  /// @param memory  memory_bytes(capacity), aligned to 64; content does not matter. It outlives
  ///                the table.
  ConnTable(const ConnTableConfig& config, Index index, std::span<std::byte> memory) noexcept
      : index_(std::move(index)),
        hash_(config.hash_seed),
        capacity_(rounded_capacity(config.capacity)),
        half_open_limit_(std::max(1u, capacity_ / std::max(1u, config.half_open_divisor))),
        hot_(reinterpret_cast<Hot*>(memory.data())),
        cold_(reinterpret_cast<ColdEntry*>(memory.data() + sizeof(Hot) * capacity_)),
        timeouts_(config.timeouts) {}

  // --- lookup ---------------------------------------------------------------------------------

  [[nodiscard]] std::uint32_t hash(const Key& key) const noexcept { return hash_(key); }

  /// hash() of a key that find_likely() will be asked for: what the lookup reads first is fetched
  /// meanwhile. To be called as soon as the key is known.
  [[nodiscard, gnu::always_inline]] std::uint32_t hash_ahead(const Key& key) const noexcept {
    const std::uint32_t h = hash(key);
    index_.prefetch(h);
    return h;
  }
  /// hash() of a key that create() will add.
  [[nodiscard, gnu::always_inline]] std::uint32_t hash_new(const Key& key) const noexcept {
    const std::uint32_t h = hash(key);
    index_.prefetch_change(h);
    return h;
  }
  /// create() will add this connection, whose hashes have been made some time ago.
  [[gnu::always_inline]] void prefetch_moves(const NewConn<F>& conn) const noexcept {
    index_.prefetch_moves(conn.forward_hash);
    if (conn.reply_hash) {
      index_.prefetch_moves(*conn.reply_hash);
    }
  }
  /// hash_ahead() for a key that was hashed before.
  [[gnu::always_inline]] void ask_ahead(std::uint32_t key_hash) const noexcept {
    index_.prefetch(key_hash);
  }

  /// Looks up 1..kMaxBulk keys and prefetches the entries of the first `pace.entries`; a caller
  /// with work to do for each asks for the others as it comes near them (prefetch()).
  /// @return bit i clear: keys[i] is unknown. Set: if it is known, then by hits[i], provided that
  ///         has_key() says so; else find() knows.
  std::uint64_t find_likely(const Key* const* keys, const std::uint32_t* hashes, std::uint32_t n,
                            KeyData* hits, LookupPace pace = {}) noexcept {
    KeyPlaces places;
    std::uint64_t known = 0;
    std::uint32_t before = 0;  // first key of the group before
    for (std::uint32_t from = 0; from < n;) {
      const std::uint32_t to = std::min(from + pace.group, n);
      index_.locate(hashes, from, to, places);
      known |= find_late(keys, hashes, before, from, places, hits, pace);
      const std::uint64_t some = index_.read(keys, hashes, from, to, places, hits);
      prefetch_some(some, hits, pace);
      known |= some;
      before = std::exchange(from, to);
    }
    return known | find_late(keys, hashes, before, n, places, hits, pace);
  }

  /// Looks up 1..kMaxBulk keys.
  /// @return bit i set: keys[i] is known, hits[i] says by which entry and direction.
  std::uint64_t find_bulk(const Key* const* keys, const std::uint32_t* hashes, std::uint32_t n,
                          KeyData* hits) noexcept {
    std::uint64_t mask = find_likely(keys, hashes, n, hits);
    for (std::uint64_t left = mask; left != 0; left &= left - 1) {
      const auto i = static_cast<std::uint32_t>(std::countr_zero(left));
      if (!confirm(*keys[i], hashes[i], hits[i])) {
        mask &= ~(std::uint64_t{1} << i);
      }
    }
    return mask;
  }

  /// Is this what find_likely() should have found for `key`?
  [[nodiscard, gnu::always_inline]] bool has_key(KeyData hit, const Key& key) const noexcept {
    return hot_[at(hit.entry())].key(hit.direction()) == key;
  }
  /// Puts a hit of find_likely() right. @return false: the key is unknown.
  [[nodiscard]] bool confirm(const Key& key, std::uint32_t key_hash, KeyData& hit) noexcept {
    return has_key(hit, key) || index_.find(key, key_hash, hit);
  }

  struct Found {
    EntryIndex index = EntryIndex::kNone;
    Direction direction = Direction::kForward;
    explicit operator bool() const noexcept { return index != EntryIndex::kNone; }
  };
  /// One key, for misses and control.
  [[nodiscard]] Found find(const Key& key) noexcept { return find(key, hash(key)); }
  /// @param key_hash  hash(key)
  [[nodiscard]] Found find(const Key& key, std::uint32_t key_hash) noexcept {
    KeyData hit;
    return index_.find(key, key_hash, hit) ? Found{hit.entry(), hit.direction()} : Found{};
  }

  // Always inline: GCC 12 takes a function that only prefetches for one without effect and drops
  // the call.
  [[gnu::always_inline]] void prefetch(EntryIndex i) const noexcept {
    const char* line = reinterpret_cast<const char*>(&hot_[at(i)]);
    __builtin_prefetch(line, 1);
    if constexpr (sizeof(Hot) > 64) {
      __builtin_prefetch(line + 64, 1);
    }
  }

  /// Precondition: `i` came from a lookup or create() and has not been released since.
  [[nodiscard]] Hot& entry(EntryIndex i) noexcept { return hot_[at(i)]; }
  [[nodiscard]] const Hot& entry(EntryIndex i) const noexcept { return hot_[at(i)]; }
  [[nodiscard]] const ColdEntry& cold(EntryIndex i) const noexcept { return cold_[at(i)]; }

  // --- states ---------------------------------------------------------------------------------

  /// A packet of this connection is forwarded: moves its state and its time. Not to be called for
  /// one that is dropped (F13: a drop keeps nothing alive).
  /// @param signal  TCP flags, sctp_signal() or 0.
  void on_packet(EntryIndex i, Direction direction, std::uint8_t signal, Tick now) noexcept {
    Hot& e = hot_[at(i)];
    if (is_steady(e.state, signal)) [[likely]] {
      e.last_seen = now;
      return;
    }
    on_packet_slow(i, direction, signal, now);
  }

  /// A SYN for this entry is to be scheduled anew: remove() it and create() with the same packet.
  [[nodiscard]] bool reusable(EntryIndex i, Direction direction,
                              std::uint8_t signal) const noexcept {
    const Hot& e = hot_[at(i)];
    return direction == Direction::kForward && reusable_by(e.state, signal, sees_replies(e.mode));
  }

  /// Moves an entry to a state by hand: kPending to its first state, a removed Service's flow to
  /// kClosed.
  void set_state(EntryIndex i, ConnState state, Tick now) noexcept;

  /// How long the source port of a finished connection is still to be left alone: the backend
  /// closed first, or it is unknown who did, less than the hold time ago. 0: it may be taken.
  [[nodiscard]] Tick hold_left(EntryIndex i, Tick now) const noexcept {
    const Tick left = cold_[at(i)].held_until - now;
    return static_cast<std::int32_t>(left) > 0 ? left : 0;
  }
  /// Over for both sides: a new flow may evict it.
  [[nodiscard]] bool is_finished(EntryIndex i) const noexcept {
    return in_states(hot_[at(i)].state, kFinishedStates);
  }

  // --- creation and end -----------------------------------------------------------------------

  /// Adds a connection. Both keys are looked up first (the forward one unless the caller has). A
  /// reply key held by an entry that is over evicts that one. A full table, or a full half-open
  /// share, evicts the oldest half-open entry, then the oldest closing one, never a steady one
  /// (F14).
  template <Releaser<F> R>
  CreateOutcome create(const NewConn<F>& conn, std::uint64_t now_ns, R& releaser) noexcept;

  /// Ends a connection at once.
  template <Releaser<F> R>
  void remove(EntryIndex i, R& releaser, ReleaseReason why = ReleaseReason::kRemoved) noexcept;

  /// Ends idle connections, a bounded number: expired heads of the lists, and the sweep's share for
  /// the time since the last call. Call once per poll.
  /// @return entries released.
  template <Releaser<F> R>
  std::uint32_t expire(Tick now, R& releaser) noexcept;

  // --- control --------------------------------------------------------------------------------

  /// Visits the connections at [cursor, cursor + max) as fn(EntryIndex, const Hot&, const
  /// ColdEntry&). A connection keeps its index, so a dump of consecutive pages shows everything
  /// that lives through it exactly once (F93).
  /// @return the next cursor; kEndOfDump after the last page.
  static constexpr std::uint32_t kEndOfDump = 0xffffffff;
  template <class Fn>
  std::uint32_t visit_page(std::uint32_t cursor, std::uint32_t max, Fn&& fn) const noexcept {
    const std::uint32_t end = cursor < used_ ? cursor + std::min(max, used_ - cursor) : used_;
    for (std::uint32_t i = cursor; i < end; ++i) {
      if (hot_[i].state != ConnState::kFree) {
        fn(static_cast<EntryIndex>(i), hot_[i], cold_[i]);
      }
    }
    return end >= used_ ? kEndOfDump : end;
  }

  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }
  [[nodiscard]] std::uint32_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::uint32_t half_open() const noexcept { return half_open_; }
  [[nodiscard]] std::uint32_t half_open_limit() const noexcept { return half_open_limit_; }
  [[nodiscard]] std::uint32_t in_state_list(ConnState s) const noexcept {
    return lists_[static_cast<std::size_t>(s)].size();
  }
  [[nodiscard]] const ConnTimeouts& timeouts() const noexcept { return timeouts_; }
  /// New time-outs hold from now on for all connections.
  void set_timeouts(const ConnTimeouts& timeouts) noexcept { timeouts_ = timeouts; }
  [[nodiscard]] Index& index() noexcept { return index_; }

 private:
  static constexpr std::uint32_t kGroup = 16;
  /// Entries to be released together, so that what their keys need is fetched together.
  struct Group {
    std::array<EntryIndex, kGroup> entries;
    std::uint32_t size = 0;
  };

  /// Those of keys [from, to) that are not where most are.
  [[gnu::always_inline]] std::uint64_t find_late(const Key* const* keys,
                                                 const std::uint32_t* hashes, std::uint32_t from,
                                                 std::uint32_t to, KeyPlaces& places,
                                                 KeyData* hits, LookupPace pace) noexcept {
    if (from == to || places.late >> from == 0) [[likely]] {
      return 0;
    }
    const std::uint64_t some = index_.read_late(keys, hashes, from, to, places, hits);
    prefetch_some(some, hits, pace);
    return some;
  }
  [[gnu::always_inline]] void prefetch_some(std::uint64_t mask, const KeyData* hits,
                                            LookupPace pace) const noexcept {
    for (std::uint64_t left = mask & bits_below(pace.entries); left != 0; left &= left - 1) {
      prefetch(hits[std::countr_zero(left)].entry());
    }
  }
  static constexpr std::uint32_t at(EntryIndex i) noexcept {
    return static_cast<std::uint32_t>(i);
  }
  EntryList<F>& list_of(ConnState s) noexcept { return lists_[static_cast<std::size_t>(s)]; }

  void on_packet_slow(EntryIndex i, Direction direction, std::uint8_t signal, Tick now) noexcept;
  void link(EntryIndex i) noexcept;
  void unlink(EntryIndex i) noexcept;
  EntryIndex last_resort_victim(Tick now) const noexcept;
  void change_state(EntryIndex i, ConnState s, Tick now) noexcept;
  static bool holds_port_when_idle(const Hot& e) noexcept;
  [[nodiscard]] EntryIndex oldest_of(std::uint32_t states, Tick now) const noexcept;
  template <Releaser<F> R>
  bool make_room(ConnState initial, Tick now, R& releaser) noexcept;
  bool insert_keys(const NewConn<F>& conn, std::uint32_t reply_hash, EntryIndex i) noexcept;
  EntryIndex take_free() noexcept;
  void prefetch_cold(EntryIndex i) const noexcept;
  void prefetch_next_free() const noexcept;
  void fill(EntryIndex i, const NewConn<F>& conn, std::uint32_t reply_hash,
            std::uint64_t now_ns) noexcept;
  template <Releaser<F> R>
  void release(EntryIndex i, R& releaser, ReleaseReason why) noexcept;
  template <Releaser<F> R>
  void collect(EntryIndex i, Group& group, R& releaser) noexcept;
  template <Releaser<F> R>
  void release_group(Group& group, R& releaser) noexcept;
  void give_back(EntryIndex i) noexcept;
  template <Releaser<F> R>
  std::uint32_t expire_lists(Tick now, R& releaser) noexcept;
  template <Releaser<F> R>
  std::uint32_t sweep(Tick now, R& releaser) noexcept;
  void earn_sweep_credit(Tick passed) noexcept;

  Index index_;
  FlowHash<Key> hash_;
  std::uint32_t capacity_;
  std::uint32_t half_open_limit_;
  Hot* hot_;
  ColdEntry* cold_;
  std::uint32_t size_ = 0;
  std::uint32_t half_open_ = 0;
  std::uint32_t used_ = 0;  ///< watermark: indices below it have been used
  EntryIndex free_ = EntryIndex::kNone;
  std::array<EntryList<F>, kConnStates> lists_{};
  ConnTimeouts timeouts_;
  Tick expired_at_ = 0;             ///< of the last expire() call
  bool lists_pending_ = false;      ///< expire_lists() ran out of its batch
  std::uint32_t sweep_cursor_ = 0;
  std::uint32_t sweep_due_ = 0;     ///< entries to visit now
  std::uint64_t sweep_credit_ = 0;  ///< entries x ticks short of one more entry
};

}  // namespace sluice::core

#include "dataplane/core/conn/conn_table_impl.h"
