#pragma once

// Stage: packets of a known connection that are more than plain: another state, a changed table, a
// next hop to be found, TTL or size at their limit. Included by worker.h.
//
// An entry is judged again when its epoch is not the tables' and the routes changed since, or, of
// UDP, its endpoint left (departures.h): a UDP flow moves when its endpoint no longer serves and
// another does (CT-2 to CT-4). Established TCP keeps its backend (M-8) whatever left, so nothing is
// asked about it; a SYN asks the tables each time, it never goes to an endpoint that left (F13).
// Flows of a Service that left go on until they end or idle out.

#include "dataplane/pipeline/worker.h"

namespace sluice::pipeline {

template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class F>
auto Worker<Io, I4, I6, C>::judge(core::EntryIndex at, core::Direction d,
                                  std::uint8_t signal) noexcept -> Judgement {
  auto& table = conns<F>();
  auto& entry = table.entry(at);
  if (table.reusable(at, d, signal)) {
    return Judgement::kDecideAnew;  // F4, F19
  }
  if (!is_current(entry)) {
    counters_.add(Counter::kConnJudged);
    const Judgement judgement = judge_destination<F>(at, d);
    if (judgement == Judgement::kDecideAnew) {
      return judgement;  // the epoch stays old until somebody has decided
    }
  }
  const bool syn = d == core::Direction::kForward && core::is_opening(signal);
  return syn && endpoint_of(entry) == nullptr ? Judgement::kDecideAnew : Judgement::kGoOn;
}

/// What the entry leads to, under the present tables. @return nullptr: it left, or its Service did.
template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class Entry>
[[nodiscard]] const core::Endpoint* Worker<Io, I4, I6, C>::endpoint_of(
    const Entry& entry) const noexcept {
  const core::ServicePort* service = tables_->table->service(entry.service);
  return service == nullptr ? nullptr
                            : service->find_endpoint(core::backend_of(entry),
                                                     core::backend_port_of(entry).host());
}

/// What has become of the entry's way, and of UDP its destination. Sets the epoch when the flow
/// goes on, and kEntryDetached when it does so without its endpoint.
template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class F>
auto Worker<Io, I4, I6, C>::judge_destination(core::EntryIndex at, core::Direction d) noexcept
    -> Judgement {
  auto& entry = conns<F>().entry(at);
  if (departures_->ways_since(entry.epoch)) {
    // Routes may have changed, or an index have gone to another address: whatever becomes of the
    // flow, its next packet looks for its next hop anew.
    entry.to_backend = NextHopIndex::kNone;
    entry.to_client = NextHopIndex::kNone;
  }
  if (entry.proto() != core::kIpProtoUdp) {
    entry.epoch = epoch_;
    return Judgement::kGoOn;
  }
  const core::Endpoint* endpoint = endpoint_of(entry);
  const bool stays = endpoint != nullptr && endpoint->serving;
  if (!stays) {
    // The frontend may lead elsewhere by now: to a Service made anew, or to other endpoints.
    const core::ServicePort* present = service_of_frontend(
        *tables_->table, core::IpAddress(entry.vip()), entry.forward().dport.host(),
        core::Protocol::kUdp);
    const core::Endpoint* same =
        present == nullptr ? nullptr
                           : present->find_endpoint(core::backend_of(entry),
                                                    core::backend_port_of(entry).host());
    const bool moves =
        present != nullptr && (same == nullptr || !same->serving) && any_serving(*present);
    if (moves && d == core::Direction::kForward) {
      return Judgement::kDecideAnew;
    }
    if (moves) {
      return Judgement::kGoOn;  // an answer under way; the client's next datagram moves
    }
    if ((entry.flags & core::kEntryDetached) == 0) {
      counters_.add(Counter::kConnDetached);
    }
    entry.flags = static_cast<std::uint8_t>(entry.flags | core::kEntryDetached);
    return Judgement::kGoOn;  // judged with every packet: a Service made anew is no departure (F12)
  }
  entry.flags = static_cast<std::uint8_t>(entry.flags & ~core::kEntryDetached);
  entry.epoch = epoch_;
  return Judgement::kGoOn;
}

/// A packet that is forwarded moves its connection's state, and the counts with it.
template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class F>
void Worker<Io, I4, I6, C>::advance(core::EntryIndex at, core::Direction d,
                                    std::uint8_t signal) noexcept {
  auto& table = conns<F>();
  const auto& entry = table.entry(at);
  const bool was_closing = counts_as_closing(entry.state);
  table.on_packet(at, d, signal, now_);
  if (const bool closing = counts_as_closing(entry.state); closing != was_closing) {
    links_.counts.moved(config_.index, entry.endpoint, closing);
  }
}

template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class F>
void Worker<Io, I4, I6, C>::forward_by_entry(std::uint32_t i, core::EntryIndex at,
                                             core::Direction d, bool opens) noexcept {
  auto& table = conns<F>();
  auto& entry = table.entry(at);
  if (!core::sees_replies(entry.mode)) {
    forward_untouched<F>(i, at);
    return;
  }
  const Packet& p = batch_.packets[i];
  const core::ParsedFrame& f = batch_.parsed[i];
  if (f.hop_limit <= 1) {
    answer_ttl_expired(i);
    return;
  }
  const bool forward = d == core::Direction::kForward;
  NextHopIndex& known = forward ? entry.to_backend : entry.to_client;
  NextHopWord word;  // read once: the mirror may change it under way
  if (known != NextHopIndex::kNone) {
    word = links_.hops.read(known);
  }
  const bool reachable = word.state() == NeighbourState::kReachable;
  Hop hop{known, word.port(), {}};
  if (!reachable) {
    hop = resolve(core::IpAddress(forward ? entry.reply().src : entry.client()), forward);
    known = hop.index;
  }
  if (hop.index != kHostHop && f.ip_length > port_info(hop.port).mtu) {
    answer_too_big(i, port_info(hop.port).mtu);
    return;
  }
  const auto translation = translation_of<F>(entry, d);
  const bool flow = f.kind == core::FrameKind::kFlow4 || f.kind == core::FrameKind::kFlow6;
  if (flow) {
    core::translate(p.data, f, translation);
  } else if (!core::translate_fragment(p.data, f, translation)) {
    drop(p, Counter::kFragmentNoFlow);
    return;
  }
  constexpr std::uint8_t kEnding = core::kTcpFin | core::kTcpRst;
  if (!opens || f.protocol == core::kIpProtoSctp || (f.tcp_flags & kEnding) != 0) {
    advance<F>(at, d, f.tcp_flags);
  }  // else its state and time are those of the packet that opened it: this one
  if (reachable) {
    put_on_wire(p, word);
  } else {
    send(p, hop);
  }
}

}  // namespace sluice::pipeline
