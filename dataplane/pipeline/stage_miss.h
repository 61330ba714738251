#pragma once

// Stage: packets without a connection on this worker: whose they are (owner procedure, steps 4 to
// 8), and whether one opens a flow (stage_open.h). Included by worker.h.

#include "dataplane/pipeline/worker.h"

namespace sluice::pipeline {

template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::serve_misses() noexcept {
  may_plan_ = misses_size_ > 1;
  for (std::uint32_t k = 0; k < misses_size_; ++k) {
    const std::uint32_t i = misses_[k];
    if (batch_.parsed[i].family == core::Family::kIpv4) {
      serve_miss<core::Ipv4>(i);
    } else {
      serve_miss<core::Ipv6>(i);
    }
  }
  make_planned();
  may_plan_ = false;
}

/// A connection may have come since the bulk lookup (by an earlier packet of this batch), or is to
/// be decided anew. @return true: served.
template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class F>
bool Worker<Io, I4, I6, C>::serve_as_hit(std::uint32_t i) noexcept {
  auto& table = conns<F>();
  const auto found = table.find(key_of<F>(i), batch_.hashes[i]);
  if (!found) {
    return false;
  }
  const std::uint8_t signal = batch_.parsed[i].tcp_flags;
  if (judge<F>(found.index, found.direction, signal) == Judgement::kGoOn) {
    forward_by_entry<F>(i, found.index, found.direction);
    return true;
  }
  counters_.add(table.reusable(found.index, found.direction, signal) ? Counter::kConnReused
                                                                     : Counter::kConnRedecided);
  table.remove(found.index, releaser_);
  return false;
}

template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class F>
void Worker<Io, I4, I6, C>::serve_miss(std::uint32_t i) noexcept {
  if (changed_ && serve_as_hit<F>(i)) {
    return;
  }
  if (is_over_budget() && drops_early<F>(i)) [[unlikely]] {  // stage_flood.h
    return;
  }
  const core::ParsedFrame& f = batch_.parsed[i];
  const core::FlowTuple tuple = tuple_of(key_of<F>(i));
  if (batch_.stages[i] == Stage::kKnown) [[unlikely]] {
    give_back<F>(i, tuple);
    return;
  }
  const bool opens = core::is_opening(f.tcp_flags);
  if (batch_.stages[i] == Stage::kHome) {
    answer_owner(i, tuple);
    return;
  }
  const Ownership owner = owner_of(*tables_, links_.owners, tuple, opens);
  if (owner.cls != FlowClass::kNone && owner.worker != config_.index &&
      batch_.stages[i] < Stage::kOwner) {
    if (elsewhere_.pays() && batch_.stages[i] == Stage::kFresh) {
      // What opens a connection is to be remembered from its next packet on.
      opens ? steering_.forget(batch_.hashes[i]) : steering_.keep(batch_.hashes[i], owner.worker);
    }
    hand_over(i, owner.worker, Stage::kOwner);
    return;
  }
  if (owner.cls != FlowClass::kRequest && settle<F>(i)) {
    return;
  }
  switch (owner.cls) {
    case FlowClass::kNone:  // stray cluster IPs are refused by rule, the rest passes
    case FlowClass::kRequest:
      serve_request<F>(i, tuple, owner.frontend);
      return;
    case FlowClass::kDirect:
      clear_direct<F>(key_of<F>(i));
      pass(i, Counter::kHostPass);
      return;
    case FlowClass::kToSourceAddress:
      pass(i, Counter::kHostNoEntry);
      return;
    case FlowClass::kReply:
      // F24: whether this is a direct flow or what is left of a translated one only the host can
      // tell; it never leaves by a port as it is.
      pass(i, f.protocol == core::kIpProtoTcp && !opens ? Counter::kHostNoEntry
                                                        : Counter::kHostPass);
      return;
  }
}

/// A direct connection to a backend must not meet a finished translated one that holds its reverse
/// key (F22).
template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class F>
void Worker<Io, I4, I6, C>::clear_direct(const typename F::Key& key) noexcept {
  auto& table = conns<F>();
  const auto found = table.find(key.reversed());
  if (found && core::in_states(table.entry(found.index).state, core::kClosingStates)) {
    table.remove(found.index, releaser_);
    counters_.add(Counter::kConnDirectCleared);
    changed_ = true;
  }
}

/// A packet that came here because its flow is remembered to be here, and has no connection: back
/// with it, unless the flow is just being opened.
template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class F>
[[gnu::noinline]] void Worker<Io, I4, I6, C>::give_back(std::uint32_t i,
                                                        const core::FlowTuple& tuple) noexcept {
  if (!(is_planned<F>(i) && settle<F>(i)) && !waits_for_answer(i, tuple)) {
    hand_over(i, batch_.from[i], Stage::kReturned);
  }
}

template <PacketIo Io, class I4, class I6, WorkerClock C>
bool Worker<Io, I4, I6, C>::hand_over(std::uint32_t i, std::size_t worker, Stage stage) noexcept {
  const bool owned = stage == Stage::kOwner || stage == Stage::kFragment;
  if (owned && batch_.stages[i] != Stage::kReturned) {
    counters_.add(Counter::kSteeringMisses);  // one that is back was counted when it left
  }
  HandoverRing& ring = links_.rings.ring(config_.index, worker);
  HandoverMessage* const message = ring.claim();
  if (message == nullptr) {
    drop(batch_.packets[i], Counter::kHandoverRingFull);
    return false;
  }
  write_message(i, stage, *message);
  ring.publish();
  counters_.add(Counter::kHandoverSent);
  return true;
}

template <PacketIo Io, class I4, class I6, WorkerClock C>
[[gnu::always_inline]] inline void Worker<Io, I4, I6, C>::write_message(
    std::uint32_t i, Stage stage, HandoverMessage& message) const noexcept {
  const core::ParsedFrame& f = batch_.parsed[i];
  message.put(batch_.packets[i]);
  message.stage = stage;
  if (f.kind == core::FrameKind::kFlow4 || f.kind == core::FrameKind::kFlow6) {
    message.put(f, batch_.hashes[i]);
  } else if ((batch_.has_ports >> i & 1) != 0) {
    message.put(batch_.ports[i]);
  } else {
    message.content = HandoverContent::kNothing;
  }
  message.from = static_cast<std::uint16_t>(config_.index);
  if (stage >= Stage::kHome) {
    message.answer = batch_.answers[i];
  }
}

template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class F>
void Worker<Io, I4, I6, C>::serve_request(std::uint32_t i, const core::FlowTuple& tuple,
                                          const std::optional<core::Frontend>& exact) noexcept {
  const core::ParsedFrame& f = batch_.parsed[i];
  const Packet& p = batch_.packets[i];
  if (waits_for_answer(i, tuple)) {
    return;
  }
  const core::Flow flow = flow_of(i, tuple);
  const core::Decision decision = core::decide(*tables_->table, flow, exact);
  if (core::drops_martian(decision, p.origin == Origin::kWire) &&
      tables_->book->is_service_address(tuple.src)) {
    drop(p, Counter::kRuleMartianSource);
    return;
  }
  if (decision.verdict != core::FlowVerdict::kForward) {
    refuse(i, decision);
    return;
  }
  const bool later_fragment = f.l4_offset == 0;
  const bool unknown = f.protocol != core::kIpProtoUdp && !core::is_opening(f.tcp_flags);
  if (later_fragment || unknown) {
    if (settle<F>(i)) {
      return;
    }
    if (needs_no_entry(decision)) {
      forward_without_entry<F>(i, decision, core::pick(decision, tuple, now_ns_, scheduler_));
    } else if (later_fragment) {
      drop(p, Counter::kFragmentNoFlow);
    } else {
      reject(i);  // a TCP or SCTP connection this node does not know: fail at once (F13)
    }
    return;
  }
  const bool budgeted = batch_.stages[i] != Stage::kPicked;  // paid for when it was asked about
  if (budgeted && is_over_budget()) {
    if (settle<F>(i)) {
      return;
    }
    if (is_over_budget()) {  // of those planned not all may have become flows
      drop(p, Counter::kConnNewFlowBudget);
      return;
    }
  }
  if (f.hop_limit <= 1 && core::asked_mode(decision) != core::ForwardingMode::kDr) {
    answer_ttl_expired(i);
    return;
  }
  if (decision.affinity_seconds != 0) {
    open_pinned_flow<F>(i, flow, decision);
    return;
  }
  choose_and_open<F>(i, flow, decision);
}

[[nodiscard]] inline Counter counter_of_rule(core::DecisionReason reason) noexcept {
  switch (reason) {
    case core::DecisionReason::kSourceNotAllowed:
      return Counter::kRuleSourceNotAllowed;
    case core::DecisionReason::kNoLocalEndpoints:
      return Counter::kRuleNoLocalEndpoints;
    case core::DecisionReason::kNoEndpoints:
      return Counter::kRuleNoEndpoints;
    case core::DecisionReason::kStrayServiceCidr:
      return Counter::kRuleStrayServiceCidr;
    default:
      return Counter::kRuleOther;
  }
}

template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::refuse(std::uint32_t i, const core::Decision& decision) noexcept {
  switch (decision.verdict) {
    case core::FlowVerdict::kReject:
      reject(i);
      return;
    case core::FlowVerdict::kDrop:
      drop(batch_.packets[i], counter_of_rule(decision.reason));
      return;
    case core::FlowVerdict::kForward:
    case core::FlowVerdict::kPass:
      pass(i, Counter::kHostPass);
      return;
  }
}

}  // namespace sluice::pipeline
