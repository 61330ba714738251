#pragma once

// Bodies of ConnTable (conn_table.h), in the order of their declaration.

#include "dataplane/core/conn/conn_table.h"

namespace sluice::core {

template <class F, KeyIndex<typename F::Key> Index>
void ConnTable<F, Index>::on_packet_slow(EntryIndex i, Direction direction, std::uint8_t signal,
                                         Tick now) noexcept {
  Hot& e = hot_[at(i)];
  const ConnState next = next_state(e.state, direction, signal, sees_replies(e.mode), e.flags);
  if (next != e.state) {
    change_state(i, next, now);
    return;
  }
  const bool to_tail = in_states(e.state, kListedStates) && e.last_seen != now &&
                       list_of(e.state).tail() != i;
  e.last_seen = now;
  if (to_tail) {
    unlink(i);
    link(i);
  }
}

template <class F, KeyIndex<typename F::Key> Index>
void ConnTable<F, Index>::set_state(EntryIndex i, ConnState state, Tick now) noexcept {
  change_state(i, state, now);
}

template <class F, KeyIndex<typename F::Key> Index>
void ConnTable<F, Index>::change_state(EntryIndex i, ConnState s, Tick now) noexcept {
  Hot& e = hot_[at(i)];
  unlink(i);
  e.state = s;
  e.last_seen = now;
  link(i);
  if (in_states(s, kFinishedStates)) {
    const bool hold = s == ConnState::kHeld ||
                      (s == ConnState::kTimeWait && (e.flags & kEntryBackendClosedFirst) != 0);
    cold_[at(i)].held_until = now + (hold ? timeouts_[ConnState::kHeld] : 0);
  }
}

/// Appends to the list of its state, if that has one. As many leave a list as come, so for each an
/// entry that is to leave later is asked for.
template <class F, KeyIndex<typename F::Key> Index>
void ConnTable<F, Index>::link(EntryIndex i) noexcept {
  const ConnState s = hot_[at(i)].state;
  if (in_states(s, kListedStates)) {
    list_of(s).push_back(hot_, cold_, i);
    half_open_ += in_states(s, kHalfOpenStates) ? 1 : 0;
    if (const EntryIndex next = list_of(s).look_ahead(hot_); next != EntryIndex::kNone) {
      prefetch(next);
      prefetch_cold(next);
    }
  }
}

template <class F, KeyIndex<typename F::Key> Index>
void ConnTable<F, Index>::unlink(EntryIndex i) noexcept {
  const ConnState s = hot_[at(i)].state;
  if (in_states(s, kListedStates)) {
    list_of(s).remove(hot_, cold_, i);
    half_open_ -= in_states(s, kHalfOpenStates) ? 1 : 0;
  }
}

/// A TCP or SCTP flow that falls silent: nobody knows what the backend still remembers of its port.
template <class F, KeyIndex<typename F::Key> Index>
bool ConnTable<F, Index>::holds_port_when_idle(const Hot& e) noexcept {
  constexpr std::uint32_t kUnknown = state_bit(ConnState::kSynReceived) |
                                     state_bit(ConnState::kEstablished) |
                                     state_bit(ConnState::kSctpEstablished);
  return (e.flags & kEntrySnatPort) != 0 && in_states(e.state, kUnknown);
}

/// Oldest entry of the lists of `states`: each list is ordered, so the oldest of all is a head.
template <class F, KeyIndex<typename F::Key> Index>
EntryIndex ConnTable<F, Index>::oldest_of(std::uint32_t states, Tick now) const noexcept {
  EntryIndex oldest = EntryIndex::kNone;
  Tick oldest_age = 0;
  for (std::uint32_t left = states; left != 0; left &= left - 1) {
    const EntryIndex head = lists_[static_cast<std::size_t>(std::countr_zero(left))].head();
    if (head == EntryIndex::kNone) {
      continue;
    }
    const Tick age = now - hot_[at(head)].last_seen;
    if (oldest == EntryIndex::kNone || age > oldest_age) {
      oldest = head;
      oldest_age = age;
    }
  }
  return oldest;
}

/// Of closing entries, those that are over go before those half of which is still open.
template <class F, KeyIndex<typename F::Key> Index>
EntryIndex ConnTable<F, Index>::last_resort_victim(Tick now) const noexcept {
  const EntryIndex over = oldest_of(kFinishedStates, now);
  return over != EntryIndex::kNone ? over : oldest_of(state_bit(ConnState::kFinWait), now);
}

template <class F, KeyIndex<typename F::Key> Index>
template <Releaser<F> R>
bool ConnTable<F, Index>::make_room(ConnState initial, Tick now, R& releaser) noexcept {
  const bool over_share =
      in_states(initial, kHalfOpenStates) && half_open_ >= half_open_limit_;
  if (!over_share && size_ < capacity_) {
    return true;
  }
  const EntryIndex half_open = oldest_of(kHalfOpenStates, now);
  if (half_open != EntryIndex::kNone) {
    release(half_open, releaser, ReleaseReason::kEvictedHalfOpen);
    return true;
  }
  const EntryIndex closing = last_resort_victim(now);
  if (closing == EntryIndex::kNone) {
    return false;
  }
  release(closing, releaser, ReleaseReason::kEvictedClosing);
  return true;
}

template <class F, KeyIndex<typename F::Key> Index>
EntryIndex ConnTable<F, Index>::take_free() noexcept {
  if (free_ != EntryIndex::kNone) {
    const EntryIndex i = free_;
    free_ = hot_[at(i)].list_next;
    return i;
  }
  const auto i = static_cast<EntryIndex>(used_++);
  new (&hot_[at(i)]) Hot{};
  new (&cold_[at(i)]) ColdEntry{};
  return i;
}

template <class F, KeyIndex<typename F::Key> Index>
[[gnu::always_inline]] inline void ConnTable<F, Index>::prefetch_cold(
    EntryIndex i) const noexcept {
  __builtin_prefetch(&cold_[at(i)], 1);
}

/// The next new flow writes both parts of this entry.
template <class F, KeyIndex<typename F::Key> Index>
[[gnu::always_inline]] inline void ConnTable<F, Index>::prefetch_next_free() const noexcept {
  const EntryIndex next = free_ != EntryIndex::kNone ? free_ : static_cast<EntryIndex>(used_);
  if (at(next) < capacity_) {
    prefetch(next);
    prefetch_cold(next);
  }
}

template <class F, KeyIndex<typename F::Key> Index>
void ConnTable<F, Index>::give_back(EntryIndex i) noexcept {
  Hot& e = hot_[at(i)];
  e.state = ConnState::kFree;
  e.list_next = free_;
  free_ = i;
}

template <class F, KeyIndex<typename F::Key> Index>
bool ConnTable<F, Index>::insert_keys(const NewConn<F>& conn, std::uint32_t reply_hash,
                                      EntryIndex i) noexcept {
  if (!index_.insert(conn.forward, conn.forward_hash, KeyData::make(i, Direction::kForward))) {
    return false;
  }
  if (sees_replies(conn.mode) &&
      !index_.insert(conn.reply, reply_hash, KeyData::make(i, Direction::kReply))) {
    index_.erase(conn.forward, conn.forward_hash);
    return false;
  }
  return true;
}

template <class F, KeyIndex<typename F::Key> Index>
void ConnTable<F, Index>::fill(EntryIndex i, const NewConn<F>& conn, std::uint32_t reply_hash,
                               std::uint64_t now_ns) noexcept {
  Hot& e = hot_[at(i)];
  e.keys[0] = conn.forward;
  e.keys[1] = conn.reply;
  e.l3_delta = conn.l3_delta;
  e.l4_delta = conn.l4_delta;
  e.last_seen = tick_of_ns(now_ns);
  e.epoch = conn.epoch;
  e.to_backend = conn.to_backend;
  e.to_client = conn.to_client;
  e.state = conn.pending ? ConnState::kPending : initial_state(conn.forward.proto);
  e.mode = conn.mode;
  e.flags = conn.flags;
  e.service = conn.service;
  e.endpoint = conn.endpoint;
  ColdEntry& cold = cold_[at(i)];
  cold.created_ns = now_ns;
  cold.held_until = tick_of_ns(now_ns);
  cold.forward_hash = conn.forward_hash;
  cold.reply_hash = reply_hash;
}

template <class F, KeyIndex<typename F::Key> Index>
template <Releaser<F> R>
CreateOutcome ConnTable<F, Index>::create(const NewConn<F>& conn, std::uint64_t now_ns,
                                          R& releaser) noexcept {
  const bool two_keys = sees_replies(conn.mode);
  std::uint32_t reply_hash = conn.reply_hash.value_or(0);
  if (two_keys && !conn.reply_hash) {
    reply_hash = hash_new(conn.reply);
  }
  KeyData hit;
  if (!conn.forward_is_absent && index_.find(conn.forward, conn.forward_hash, hit)) {
    return {CreateResult::kExists, hit.entry(), hit.direction()};
  }
  if (two_keys && conn.forward == conn.reply) {
    return {CreateResult::kReplyClash, EntryIndex::kNone, Direction::kForward};
  }
  if (two_keys && index_.find(conn.reply, reply_hash, hit)) {
    if (!is_finished(hit.entry())) {
      return {CreateResult::kReplyClash, hit.entry(), hit.direction()};
    }
    release(hit.entry(), releaser, ReleaseReason::kReplyClash);
  }
  const ConnState initial = conn.pending ? ConnState::kPending : initial_state(conn.forward.proto);
  if (!make_room(initial, tick_of_ns(now_ns), releaser)) {
    return {};
  }
  const EntryIndex i = take_free();
  if (!insert_keys(conn, reply_hash, i)) {
    give_back(i);
    return {};
  }
  fill(i, conn, reply_hash, now_ns);
  ++size_;
  link(i);
  prefetch_next_free();
  return {CreateResult::kCreated, i, Direction::kForward};
}

template <class F, KeyIndex<typename F::Key> Index>
template <Releaser<F> R>
void ConnTable<F, Index>::remove(EntryIndex i, R& releaser, ReleaseReason why) noexcept {
  release(i, releaser, why);
}

/// The one place through which every entry ends.
template <class F, KeyIndex<typename F::Key> Index>
template <Releaser<F> R>
void ConnTable<F, Index>::release(EntryIndex i, R& releaser, ReleaseReason why) noexcept {
  const Hot& e = hot_[at(i)];
  const ColdEntry& cold = cold_[at(i)];
  index_.erase(e.forward(), cold.forward_hash);
  if (sees_replies(e.mode)) {
    index_.erase(e.reply(), cold.reply_hash);
  }
  unlink(i);
  releaser.released(i, e, cold, why);
  give_back(i);
  --size_;
}

/// Puts an idle entry aside; a full group is released.
template <class F, KeyIndex<typename F::Key> Index>
template <Releaser<F> R>
void ConnTable<F, Index>::collect(EntryIndex i, Group& group, R& releaser) noexcept {
  prefetch_cold(i);
  group.entries[group.size++] = i;
  if (group.size == kGroup) {
    release_group(group, releaser);
  }
}

/// Releases a group. What erasing its keys reads comes in two steps, buckets and then key slots, for
/// all of them at once instead of one after the other.
template <class F, KeyIndex<typename F::Key> Index>
template <Releaser<F> R>
void ConnTable<F, Index>::release_group(Group& group, R& releaser) noexcept {
  // An entry without a reply key asks in vain. No lambda: GCC would drop it (see prefetch()).
  for (std::uint32_t g = 0; g < group.size; ++g) {
    const ColdEntry& cold = cold_[at(group.entries[g])];
    index_.prefetch_change(cold.forward_hash);
    index_.prefetch_change(cold.reply_hash);
  }
  for (std::uint32_t g = 0; g < group.size; ++g) {
    const ColdEntry& cold = cold_[at(group.entries[g])];
    index_.prefetch_key(cold.forward_hash);
    index_.prefetch_key(cold.reply_hash);
  }
  for (std::uint32_t g = 0; g < group.size; ++g) {
    release(group.entries[g], releaser, ReleaseReason::kExpired);
  }
  group.size = 0;
}

template <class F, KeyIndex<typename F::Key> Index>
template <Releaser<F> R>
std::uint32_t ConnTable<F, Index>::expire(Tick now, R& releaser) noexcept {
  const Tick passed = now - expired_at_;
  expired_at_ = now;
  if (passed != 0) {
    earn_sweep_credit(passed);
    lists_pending_ = true;
  }
  std::uint32_t released = 0;
  if (lists_pending_) {
    released += expire_lists(now, releaser);
  }
  if (sweep_due_ != 0) {
    released += sweep(now, releaser);
  }
  return released;
}

template <class F, KeyIndex<typename F::Key> Index>
template <Releaser<F> R>
std::uint32_t ConnTable<F, Index>::expire_lists(Tick now, R& releaser) noexcept {
  std::uint32_t budget = kExpireBatch;
  std::uint32_t released = 0;
  for (std::uint32_t left = kListedStates; left != 0; left &= left - 1) {
    const auto s = static_cast<ConnState>(std::countr_zero(left));
    Group group;
    EntryIndex i = list_of(s).head();
    // Entries of the group stay in the list until they are released, so walk along the links.
    while (i != EntryIndex::kNone && budget != 0 && now - hot_[at(i)].last_seen >= timeouts_[s]) {
      const EntryIndex next = hot_[at(i)].list_next;
      --budget;
      if (holds_port_when_idle(hot_[at(i)])) {
        change_state(i, ConnState::kHeld, now);
      } else {
        ++released;
        collect(i, group, releaser);
      }
      i = next;
    }
    release_group(group, releaser);
  }
  lists_pending_ = budget == 0;
  return released;
}

/// The whole table in kSweepSeconds: each tick earns used / (8 s in ticks) entries.
template <class F, KeyIndex<typename F::Key> Index>
void ConnTable<F, Index>::earn_sweep_credit(Tick passed) noexcept {
  constexpr std::uint64_t kPeriod = ticks_of_ms(kSweepSeconds * 1000) - 1;
  const std::uint64_t capped = std::min<std::uint64_t>(passed, kPeriod);
  sweep_credit_ += used_ * capped;
  const std::uint64_t due = sweep_due_ + sweep_credit_ / kPeriod;
  sweep_credit_ %= kPeriod;
  sweep_due_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(due, used_));
}

template <class F, KeyIndex<typename F::Key> Index>
template <Releaser<F> R>
std::uint32_t ConnTable<F, Index>::sweep(Tick now, R& releaser) noexcept {
  const std::uint32_t batch = std::min(sweep_due_, kSweepBatch);
  sweep_due_ -= batch;
  std::uint32_t released = 0;
  Group group;
  for (std::uint32_t n = 0; n < batch; ++n) {
    if (sweep_cursor_ >= used_) {
      sweep_cursor_ = 0;
    }
    const auto i = static_cast<EntryIndex>(sweep_cursor_++);
    const Hot& e = hot_[at(i)];
    if (!in_states(e.state, kSteadyStates) || now - e.last_seen < timeouts_[e.state]) {
      continue;
    }
    if (holds_port_when_idle(e)) {
      change_state(i, ConnState::kHeld, now);
    } else {
      ++released;
      collect(i, group, releaser);
    }
  }
  release_group(group, releaser);
  for (std::uint32_t n = 0, i = sweep_cursor_; n < std::min(batch, sweep_due_) && i < used_;
       ++n, ++i) {
    prefetch(static_cast<EntryIndex>(i));
  }
  return released;
}

}  // namespace sluice::core
