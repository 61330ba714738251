#pragma once

// Stage: ICMP. Errors that quote a packet of a connection are translated like that packet's answer
// would be, echo to an announced address is answered, the rest is the host's. Included by worker.h.

#include "dataplane/core/net/icmp.h"
#include "dataplane/pipeline/worker.h"

namespace sluice::pipeline {

template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::serve_icmp(std::uint32_t i) noexcept {
  const Packet& p = batch_.packets[i];
  const core::ParsedFrame& f = batch_.parsed[i];
  core::QuotedPacket quoted;
  if (core::parse_icmp_error(p.data, p.contiguous, f, quoted)) {
    if (f.family == core::Family::kIpv4) {
      serve_icmp_error<core::Ipv4>(i, quoted);
    } else {
      serve_icmp_error<core::Ipv6>(i, quoted);
    }
    return;
  }
  if (serve_tunnel_error(i)) {
    return;
  }
  if (find_announced(*tables_, f.dst()) != nullptr && core::make_echo_reply(p.data, f)) {
    counters_.add(Counter::kEchoAnswered);
    return_to_sender(i);
    return;
  }
  pass(i, Counter::kHostIcmp);
}

/// Owner procedure with the quoted tuple, source and destination exchanged: the direction in which
/// the error travels.
template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class F>
void Worker<Io, I4, I6, C>::serve_icmp_error(std::uint32_t i,
                                             const core::QuotedPacket& quoted) noexcept {
  const typename F::Key key = core::key_of<F>(quoted.inner).reversed();
  const auto found = conns<F>().find(key);
  if (found) {
    forward_icmp_error<F>(i, quoted, found.index, found.direction);
    return;
  }
  const Ownership owner = owner_of(*tables_, links_.owners, tuple_of(key), false);
  if (owner.cls != FlowClass::kNone && owner.worker != config_.index &&
      batch_.stages[i] < Stage::kOwner) {
    hand_over(i, owner.worker, Stage::kOwner);
    return;
  }
  if (owner.cls == FlowClass::kRequest) {
    // About an answer of dr or ipip, perhaps, whose flow does without an entry.
    const HashedWay to = way_without_entry(i, tuple_of(key));
    if (to.reached) {
      counters_.add(Counter::kIcmpUntouched);
      send_by_hash<F>(i, key, to);
      return;
    }
  }
  pass(i, Counter::kHostIcmp);
}

/// The router that reports stays the outer source; an error by the endpoint of the flow itself
/// comes from the address its peer knows.
template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class F>
void Worker<Io, I4, I6, C>::forward_icmp_error(std::uint32_t i, const core::QuotedPacket& quoted,
                                               core::EntryIndex at, core::Direction d) noexcept {
  const Packet& p = batch_.packets[i];
  const core::ParsedFrame& f = batch_.parsed[i];
  auto& entry = conns<F>().entry(at);
  if (!core::sees_replies(entry.mode)) {
    if (!is_current(entry)) {
      (void)judge_destination<F>(at, d);  // its next hop may have gone to another address
    }
    counters_.add(Counter::kIcmpUntouched);
    forward_untouched<F>(i, at);
    return;
  }
  if (f.hop_limit <= 1) {
    drop(p, Counter::kTtlExpired);
    return;
  }
  const bool forward = d == core::Direction::kForward;
  const auto& outer = core::key_of<F>(f);
  core::IcmpTranslation<F> to;
  if (forward) {
    to.outer_src = outer.src == entry.client() ? entry.reply().dst : outer.src;
    to.outer_dst = entry.reply().src;
    to.inner = entry.reply();
  } else {
    to.outer_src = outer.src == entry.reply().src ? entry.vip() : outer.src;
    to.outer_dst = entry.client();
    to.inner = entry.forward();
  }
  core::translate_icmp_error(p.data, p.contiguous, f, quoted, to);
  counters_.add(Counter::kIcmpTranslated);
  send(p, resolve(core::IpAddress(to.outer_dst), forward));
}

}  // namespace sluice::pipeline
