#pragma once

// Stage: bulk lookup of one family's flows and the plain established packet, which reads its entry,
// the next-hop word and nothing else. The lookup goes by hashes; whether the entry is the packet's
// is seen when it is read (conn_table.h). Included by worker.h.

#include "dataplane/pipeline/worker.h"

namespace sluice::pipeline {

/// So many packets before its turn the entry of one is asked for. IPv6's entries are two lines, so
/// they are asked for half as early.
/// @param lines  MemoryPace::lines_ahead
template <class F>
[[nodiscard]] constexpr std::uint32_t entries_ahead(std::uint32_t lines) noexcept {
  return static_cast<std::uint32_t>(lines * 64 / sizeof(core::HotEntry<F>));
}

template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class F>
void Worker<Io, I4, I6, C>::serve_flows() noexcept {
  constexpr bool kV4 = F::kFamily == core::Family::kIpv4;
  const std::uint32_t n = kV4 ? batch_.flows4_size : batch_.flows6_size;
  if (n == 0) {
    return;
  }
  const auto& places = kV4 ? batch_.flows4 : batch_.flows6;
  const std::uint32_t* hashes = kV4 ? batch_.hashes4.data() : batch_.hashes6.data();
  const std::uint32_t ahead = entries_ahead<F>(config_.pace.lines_ahead);
  // Not what came over a ring: a hand-over costs 83 cycles in groups and 73 so at 4 million flows,
  // 35 and 40 at 64,000 (Zen 5).
  const std::uint32_t group = batch_.unparsed != 0 ? config_.pace.group : std::uint32_t{kBurst};
  const std::uint64_t likely = conns<F>().find_likely(
      batch_keys<F>(), hashes, n, hits_.data(), {.group = group, .entries = ahead});
  const std::uint64_t later = ahead < kBurst ? likely >> ahead : 0;
  std::uint32_t unknown = 0;
  for (std::uint32_t k = 0; k < n; ++k) {
    const std::uint32_t i = places[k];
    if ((later >> k & 1) != 0) {
      conns<F>().prefetch(hits_[k + ahead].entry());
    }
    const bool maybe = (likely >> k & 1) != 0;
    if (maybe && forward_plain<F>(i, hits_[k])) [[likely]] {
      continue;
    }
    batch_.hashes[i] = hashes[k];
    if (!maybe || !serve_hit<F>(i, hits_[k])) {
      misses_[misses_size_++] = static_cast<std::uint8_t>(i);
      ++unknown;
    }
  }
  counters_.add(Counter::kConnHits, n - unknown);
  if (unknown != 0) {
    counters_.add(Counter::kConnMisses, unknown);
  }
}

/// Has the entry been judged by the tables in force, or by older ones that say the same of it?
template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class Entry>
[[nodiscard, gnu::always_inline]] inline bool Worker<Io, I4, I6, C>::is_current(
    Entry& entry) const noexcept {
  if (entry.epoch == epoch_) [[likely]] {
    return true;
  }
  if (departures_->since(entry.service, entry.endpoint, entry.epoch)) {
    return false;
  }
  entry.epoch = epoch_;
  return true;
}

/// The plain packet of an established connection whose tables, next hop and size ask no question.
/// @return false: anything else (also an entry of another flow), nothing was done.
template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class F>
[[gnu::always_inline]] inline bool Worker<Io, I4, I6, C>::forward_plain(
    std::uint32_t i, core::KeyData hit) noexcept {
  auto& entry = conns<F>().entry(hit.entry());
  const core::Direction d = hit.direction();
  const core::ParsedFrame& f = batch_.parsed[i];
  const Packet& p = batch_.packets[i];
  const NextHopIndex hop = d == core::Direction::kForward ? entry.to_backend : entry.to_client;
  // The next hop first: flows of dr and ipip have none there, and a path of their own.
  const bool plain = hop != NextHopIndex::kNone && entry.key(d) == key_of<F>(i) &&
                     is_current(entry) && core::is_steady(entry.state, f.tcp_flags) &&
                     f.hop_limit > 1;
  if (!plain) [[unlikely]] {
    return false;
  }
  const NextHopWord word = links_.hops.read(hop);
  const FastPort& out = fast_port(word.port());
  if (word.state() != NeighbourState::kReachable || p.total > out.max_frame) [[unlikely]] {
    return false;
  }
  entry.last_seen = now_;
  core::translate(p.data, f, translation_of<F>(entry, d));
  put_on_wire(p, word);
  return true;
}

/// What find_likely() found and forward_plain() did not forward. @return false: the flow is
/// unknown, nothing was done.
template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class F>
[[gnu::noinline]] bool Worker<Io, I4, I6, C>::serve_hit(std::uint32_t i,
                                                        core::KeyData hit) noexcept {
  if (!conns<F>().confirm(key_of<F>(i), batch_.hashes[i], hit)) {
    return false;
  }
  if (forward_one_way<F>(i, hit)) {  // stage_direct_return.h
    return true;
  }
  const core::Direction d = hit.direction();
  if (judge<F>(hit.entry(), d, batch_.parsed[i].tcp_flags) == Judgement::kDecideAnew) {
    misses_[misses_size_++] = static_cast<std::uint8_t>(i);
    changed_ = true;  // makes the miss stage look again
    return true;
  }
  forward_by_entry<F>(i, hit.entry(), d);
  return true;
}

}  // namespace sluice::pipeline
