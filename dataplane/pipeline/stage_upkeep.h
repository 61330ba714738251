#pragma once

// Stage: what a poll does besides its frames, a bounded amount each time: packets that wait for a
// neighbour, expiry, dumps, gauges. Included by worker.h.

#include "dataplane/pipeline/worker.h"

namespace sluice::pipeline {

template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::upkeep() noexcept {
  conns4_.expire(now_, releaser_);
  conns6_.expire(now_, releaser_);
  if (upkeep_at_ != now_) {  // once a tick
    upkeep_at_ = now_;
    gauges_.connections4.store(conns4_.size(), std::memory_order_relaxed);
    gauges_.connections6.store(conns6_.size(), std::memory_order_relaxed);
    if (waiting_.held() != 0) {
      release_waiting();
    }
    if (fragments_.used() != 0) {
      expire_fragments();
    }
    if (pending_.used() != 0) {
      expire_pending();
    }
    take_path_mtus();
    announce();
  }
  serve_dump();
}

template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::release_waiting() noexcept {
  constexpr core::Tick kPatience = core::ticks_of_ms(3000);  // the kernel asks three times
  waiting_.release([&](HopQueue::Waiting& w) {
    const NextHopIndex index = links_.hops.find(w.port, w.address);
    const NextHopWord word = index == NextHopIndex::kNone
                                 ? NextHopWord::make({}, w.port, NeighbourState::kUnresolved)
                                 : links_.hops.read(index);
    const bool known = word.state() == NeighbourState::kReachable;
    const bool failed = word.state() == NeighbourState::kFailed;
    const bool host = word.state() == NeighbourState::kHost;
    if (!known && !failed && !host && now_ - w.since < kPatience) {
      if (static_cast<std::int32_t>(now_ - w.ask_at) >= 0) {
        ask_again(w);
      }
      return false;
    }
    for (std::uint32_t k = 0; k < w.count; ++k) {
      if (known) {
        put_on_wire(w.packets[k], word);
      } else if (host) {
        leave_to_host(w.packets[k]);
      } else {
        drop(w.packets[k], failed ? Counter::kHopFailed : Counter::kHopTimeout);
      }
    }
    return true;
  });
  counters_.set(Counter::kHeldNeighbour, waiting_.held());
}

template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::serve_dump() noexcept {
  DumpMailbox::Page* page = links_.dumps.open();
  if (page == nullptr) {
    return;
  }
  if (page->family == core::Family::kIpv4) {
    fill_page<core::Ipv4>(*page);
  } else {
    fill_page<core::Ipv6>(*page);
  }
  links_.dumps.answer();
}

template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class F>
void Worker<Io, I4, I6, C>::fill_page(DumpMailbox::Page& page) noexcept {
  using Table = std::remove_reference_t<decltype(conns<F>())>;
  const auto copy = [&](core::EntryIndex, const typename Table::Hot& e,
                        const core::ColdEntry& cold) {
    ConnectionRow& row = page.rows[page.count++];
    row.worker = static_cast<std::uint32_t>(config_.index);
    row.flow = {core::IpAddress(e.client()), core::IpAddress(e.vip()), e.forward().sport.host(),
                e.forward().dport.host(), static_cast<core::Protocol>(e.proto())};
    const bool translated = core::sees_replies(e.mode);
    row.backend = core::backend_of(e);
    row.backend_port = core::backend_port_of(e).host();
    row.snat = core::IpAddress(translated ? e.reply().dst : e.client());
    row.snat_port = translated ? e.reply().dport.host() : e.forward().sport.host();
    row.state = e.state;
    row.mode = e.mode;
    row.service = e.service;
    row.endpoint = e.endpoint;
    row.age_ms = (now_ns_ - cold.created_ns) / 1'000'000;
    row.idle_ms = (std::uint64_t{now_ - e.last_seen} << core::kTickShift) / 1'000'000;
  };
  const std::uint32_t next = conns<F>().visit_page(page.cursor, kDumpPage, copy);
  page.last = next == Table::kEndOfDump;
  page.next = next;
}

/// The last word of a worker: what it still holds is dropped and counted.
template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::drain() noexcept {
  waiting_.release([&](HopQueue::Waiting& w) {
    for (std::uint32_t k = 0; k < w.count; ++k) {
      drop(w.packets[k], Counter::kShutdownDropped);
    }
    return true;
  });
  counters_.set(Counter::kHeldNeighbour, 0);
  fragments_.expire(now_ + FragmentTable::kPatience, FragmentTable::kDatagrams,
                    [this](const Packet& packet) { drop(packet, Counter::kShutdownDropped); });
  counters_.set(Counter::kHeldFragments, 0);
  pending_.clear([this](const Packet& packet) { drop(packet, Counter::kShutdownDropped); });
  counters_.set(Counter::kHeldAffinity, 0);
  do {
    ring_bursts_ = 0;
    if (!receive_handed_over()) {
      break;
    }
    for (std::uint32_t i = 0; i < batch_.size; ++i) {
      drop(batch_.packets[i], Counter::kShutdownDropped);
    }
  } while (true);
  flush();
}

}  // namespace sluice::pipeline
