#pragma once

// Stage: what a new flow gets. Included by worker.h.
//
// A burst of new flows is served in two passes: first each gets its endpoint and its next hop, and
// what making its entry reads is asked for; then the entries are made and the packets forwarded, in
// order. Planned are flows whose choice depends on no other flow of the burst: not where connections
// are counted to choose, nor where a source port is to be found. Whoever needs to know whether a
// connection exists has the planned ones made first (settle()).

#include "dataplane/pipeline/worker.h"

namespace sluice::pipeline {

/// The packet may belong to a flow that is planned. @return true: it did, and is served.
template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class F>
bool Worker<Io, I4, I6, C>::settle(std::uint32_t i) noexcept {
  if (planned4_.size + planned6_.size == 0) {
    return false;
  }
  make_planned();
  return serve_as_hit<F>(i);
}

template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::make_planned() noexcept {
  make_planned_of(planned4_);
  make_planned_of(planned6_);
}

template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class F>
void Worker<Io, I4, I6, C>::make_planned_of(PlannedFlows<F>& plans) noexcept {
  const std::uint32_t n = plans.size;
  plans.size = 0;
  for (std::uint32_t k = 0; k < n; ++k) {
    conns<F>().prefetch_moves(plans.flows[k].conn);
  }
  for (std::uint32_t k = 0; k < n; ++k) {
    auto& plan = plans.flows[k];
    const std::uint32_t i = plan.place;
    if (changed_ && serve_as_hit<F>(i)) {
      continue;  // its key is the reply key of a flow made just now
    }
    const core::CreateOutcome outcome = make_entry<F>(i, plan.conn);
    if (outcome.result() == core::CreateResult::kCreated) [[likely]] {
      forward_by_entry<F>(i, outcome.index(), outcome.direction(), true);
    } else {
      const core::FlowTuple tuple = tuple_of(plan.conn.forward);
      conclude_open<F>(i, flow_of(i, tuple), plan.decision, plan.first, outcome, Obstacle::kNone);
    }
  }
}

/// A flow of this packet's key is planned already.
template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class F>
bool Worker<Io, I4, I6, C>::is_planned(std::uint32_t i) noexcept {
  const auto& plans = planned<F>();
  for (std::uint32_t k = 0; k < plans.size; ++k) {
    const core::NewConn<F>& conn = plans.flows[k].conn;
    if (conn.forward_hash == batch_.hashes[i] && conn.forward == key_of<F>(i)) {
      return true;
    }
  }
  return false;
}

/// Picks an endpoint; the flow is planned, or opened at once. A second packet that would open a flow
/// of this burst takes no turn of its scheduler.
template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class F>
void Worker<Io, I4, I6, C>::choose_and_open(std::uint32_t i, const core::Flow& flow,
                                            const core::Decision& decision) noexcept {
  if (is_planned<F>(i) && settle<F>(i)) {
    return;
  }
  const core::EndpointIndex first = core::pick(decision, flow.tuple, now_ns_, scheduler_);
  if (may_plan_ && first != core::EndpointIndex::kNone &&
      core::sees_replies(core::asked_mode(decision)) &&
      !core::picks_by_load(decision.service->scheduler)) {
    auto& plans = planned<F>();
    auto& plan = plans.flows[plans.size];
    std::construct_at(&plan.conn);  // in place: an assignment would copy a temporary
    const core::Endpoint& endpoint = decision.service->endpoint(first);
    const PortIndex egress = propose<F>(i, flow, decision, endpoint, false, plan.conn);
    if (plan.conn.mode == core::ForwardingMode::kNat) {
      plan.conn.reply_hash = conns<F>().hash_new(plan.conn.reply);
      plan.place = i;
      plan.first = first;
      plan.decision = decision;
      if (++plans.size == PlannedFlows<F>::kMax) {
        make_planned_of(plans);
      }
      return;
    }
    if (!settle<F>(i)) {  // which leaves this plan alone: it is behind those that count
      Obstacle obstacle = Obstacle::kNone;
      const core::CreateOutcome outcome = make_chosen<F>(i, plan.conn, egress, obstacle);
      conclude_open<F>(i, flow, decision, first, outcome, obstacle);
    }
    return;
  }
  if (!settle<F>(i)) {
    open_flow<F>(i, flow, decision, first);
  }
}

/// Creates the connection to the candidate `first`.
template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class F>
void Worker<Io, I4, I6, C>::open_flow(std::uint32_t i, const core::Flow& flow,
                                      const core::Decision& decision,
                                      core::EndpointIndex first) noexcept {
  if (first == core::EndpointIndex::kNone) {
    drop(batch_.packets[i], Counter::kConnNoCandidate);
    return;
  }
  Obstacle obstacle = Obstacle::kNone;
  const core::CreateOutcome outcome =
      try_candidate<F>(i, flow, decision, decision.service->endpoint(first), false, obstacle);
  conclude_open<F>(i, flow, decision, first, outcome, obstacle);
}

/// A reply key that a live flow holds (one UDP socket, two VIPs, one backend) leads to another
/// candidate, and when there is none to source translation; with affinity or hashing to source
/// translation at once.
/// @param outcome,obstacle  what came of the first candidate.
template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class F>
void Worker<Io, I4, I6, C>::conclude_open(std::uint32_t i, const core::Flow& flow,
                                          const core::Decision& decision,
                                          core::EndpointIndex first, core::CreateOutcome outcome,
                                          Obstacle obstacle) noexcept {
  const auto& service = *decision.service;
  const std::size_t others = other_candidates(decision);
  for (std::size_t n = 0; n < others && outcome.result() == core::CreateResult::kReplyClash; ++n) {
    const core::EndpointIndex next = candidate_after(decision, first, n);
    if (next != first) {
      outcome = try_candidate<F>(i, flow, decision, service.endpoint(next), false, obstacle);
    }
  }
  if (outcome.result() == core::CreateResult::kReplyClash && obstacle == Obstacle::kNone) {
    outcome = try_candidate<F>(i, flow, decision, service.endpoint(first), true, obstacle);
  }
  switch (outcome.result()) {
    case core::CreateResult::kCreated:
      forward_by_entry<F>(i, outcome.index(), outcome.direction(), true);
      return;
    case core::CreateResult::kExists:
      forward_by_entry<F>(i, outcome.index(), outcome.direction());
      return;
    case core::CreateResult::kFull:
      if (needs_no_entry(decision)) {
        forward_without_entry<F>(i, decision, first);
      } else {
        drop(batch_.packets[i], Counter::kConnTableFull);
      }
      return;
    case core::CreateResult::kReplyClash:
      refuse_obstructed(i, decision, service.endpoint(first), obstacle);
      return;
  }
}

template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class F>
core::CreateOutcome Worker<Io, I4, I6, C>::try_candidate(std::uint32_t i, const core::Flow& flow,
                                                         const core::Decision& decision,
                                                         const core::Endpoint& chosen,
                                                         bool translate_source,
                                                         Obstacle& obstacle) noexcept {
  if (const auto mode = core::asked_mode(decision); !core::sees_replies(mode)) {
    const auto outcome = try_untouched<F>(i, decision, chosen, mode);
    const bool clash = outcome.result() == core::CreateResult::kReplyClash;
    obstacle = clash ? Obstacle::kOutOfReach : obstacle;
    return outcome;
  }
  core::NewConn<F> conn;
  const PortIndex egress = propose<F>(i, flow, decision, chosen, translate_source, conn);
  return make_chosen<F>(i, conn, egress, obstacle);
}

/// Makes the entry of a flow as proposed, with a source of its own if that is translated.
template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class F>
core::CreateOutcome Worker<Io, I4, I6, C>::make_chosen(std::uint32_t i, core::NewConn<F>& conn,
                                                       PortIndex egress,
                                                       Obstacle& obstacle) noexcept {
  if (conn.mode == core::ForwardingMode::kFullNat && !choose_source<F>(conn, egress)) {
    obstacle = Obstacle::kNoSourcePort;
    return {core::CreateResult::kReplyClash, core::EntryIndex::kNone, core::Direction::kForward};
  }
  return make_entry<F>(i, conn);
}

/// What the flow's entry will be with this endpoint: all but the source, if that is translated, and
/// what follows from it.
/// @return the port it leaves by.
template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class F>
PortIndex Worker<Io, I4, I6, C>::propose(std::uint32_t i, const core::Flow& flow,
                                         const core::Decision& decision,
                                         const core::Endpoint& chosen, bool translate_source,
                                         core::NewConn<F>& conn) noexcept {
  conn.forward = key_of<F>(i);
  conn.forward_hash = batch_.hashes[i];
  conn.forward_is_absent = true;
  conn.reply = F::Key::of(address_as<F>(chosen.address), conn.forward.src,
                          core::Be16::from_host(chosen.port), conn.forward.sport,
                          conn.forward.proto);
  conn.epoch = epoch_;
  conn.service = decision.slot;
  conn.endpoint = chosen.id;
  const Hop hop = resolve(chosen.address, true);
  conn.to_backend = hop.index;
  const bool keeps_source =
      core::host_keeps_source(*tables_->table, chosen.address.family(), hop.index == kHostHop);
  const bool full = translate_source ||
                    (!keeps_source && core::source_is_translated(decision, flow, chosen));
  conn.mode = full ? core::ForwardingMode::kFullNat : core::ForwardingMode::kNat;
  return hop.port;
}

template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class F>
core::CreateOutcome Worker<Io, I4, I6, C>::make_entry(std::uint32_t i,
                                                      core::NewConn<F>& conn) noexcept {
  const auto translation = core::Translation<F>::between(conn.forward, conn.reply.reversed());
  conn.l3_delta = translation.l3.raw();
  conn.l4_delta = translation.l4.raw();
  const core::CreateOutcome outcome = conns<F>().create(conn, now_ns_, releaser_);
  if (outcome.result() == core::CreateResult::kCreated) {
    note_created(i, conn.endpoint);
  } else if (outcome.result() == core::CreateResult::kReplyClash) {
    counters_.add(Counter::kConnReplyClash);
  }
  return outcome;
}

template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::note_created(std::uint32_t i, core::EndpointId id) noexcept {
  batch_.opened |= PacketBatch::bit(i);
  links_.counts.opened(config_.index, id);
  counters_.add(Counter::kConnCreated);
  ++opened_in_poll_;
  changed_ = true;
  if (elsewhere_.ever()) {
    steering_.forget(batch_.hashes[i]);
  }
}

/// No candidate took the flow: it alone is refused.
template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::refuse_obstructed(std::uint32_t i, const core::Decision& decision,
                                              const core::Endpoint& first,
                                              Obstacle obstacle) noexcept {
  const Packet& p = batch_.packets[i];
  switch (obstacle) {
    case Obstacle::kNone:
      drop(p, Counter::kConnClashUnsolved);
      return;
    case Obstacle::kNoSourcePort:
      note_exhausted(decision, first.address);
      drop(p, Counter::kConnSnatExhausted);
      return;
    case Obstacle::kOutOfReach:
      counters_.add(Counter::kConnModeOutOfReach);
      reject(i);
      return;
  }
}

}  // namespace sluice::pipeline
