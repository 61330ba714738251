#pragma once

// Stage: new flows to a service port with session affinity (design section 5). Included by
// worker.h.
//
// A client's pins are read and written by its home worker alone, which may be another one than the
// owner of the flow. Then the first packet itself goes there and comes back with the endpoint:
//
//   owner --kHome--> home: finds or picks among its candidates, remembers
//         <-kPicked-- home
//   owner: does the endpoint still take this flow? Creates the connection; what came meanwhile goes
//          on after that packet.
//
// Only new flows ask. An answer that the tables have overtaken is replaced by a pick of the owner's
// own: the stage cannot go back, and the next flow of the client asks anew.

#include <algorithm>

#include "dataplane/pipeline/worker.h"

namespace sluice::pipeline {

template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class F>
void Worker<Io, I4, I6, C>::open_pinned_flow(std::uint32_t i, const core::Flow& flow,
                                             const core::Decision& decision) noexcept {
  if (batch_.stages[i] == Stage::kPicked) {
    open_flow<F>(i, flow, decision, picked_endpoint(decision, flow.tuple, batch_.answers[i]));
    return;
  }
  const std::size_t home = links_.owners.home_of(flow.tuple.src);
  if (home == config_.index) {
    open_flow<F>(i, flow, decision, pinned_endpoint(decision, flow.tuple));
    return;
  }
  ask_home(i, flow.tuple, home);
}

/// At home.
template <PacketIo Io, class I4, class I6, WorkerClock C>
core::EndpointIndex Worker<Io, I4, I6, C>::pinned_endpoint(const core::Decision& decision,
                                                           const core::FlowTuple& tuple) noexcept {
  core::EndpointIndex chosen = pins_.find(decision, tuple.src, now_ns_);
  const bool known = chosen != core::EndpointIndex::kNone;
  if (!known) {
    chosen = core::pick(decision, tuple, now_ns_, scheduler_);
  }
  counters_.add(known ? Counter::kAffinityKept : Counter::kAffinityPicked);
  if (chosen != core::EndpointIndex::kNone && pins_.record(decision, tuple.src, chosen, now_ns_)) {
    counters_.add(Counter::kAffinityEvicted);
  }
  return chosen;
}

/// At the owner: the home worker's choice if it is still a candidate.
template <PacketIo Io, class I4, class I6, WorkerClock C>
core::EndpointIndex Worker<Io, I4, I6, C>::picked_endpoint(const core::Decision& decision,
                                                           const core::FlowTuple& tuple,
                                                           const AffinityAnswer& answer) noexcept {
  const auto& eligible = decision.eligible;
  if (answer.picked != core::EndpointId::kNone) {
    if (answer.generation == tables_->table->generation() &&
        std::binary_search(eligible.begin(), eligible.end(), answer.index)) {
      return answer.index;
    }
    for (const core::EndpointIndex index : eligible) {
      if (decision.service->endpoint(index).id == answer.picked) {
        return index;
      }
    }
  }
  counters_.add(Counter::kAffinityStale);
  return core::pick(decision, tuple, now_ns_, scheduler_);
}

template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::ask_home(std::uint32_t i, const core::FlowTuple& tuple,
                                     std::size_t home) noexcept {
  PendingFlows::Flow* flow = pending_.add(tuple, now_);
  if (flow == nullptr) {
    drop(batch_.packets[i], Counter::kAffinityPendingFull);
    return;
  }
  batch_.answers[i] = {};
  if (!hand_over(i, home, Stage::kHome)) {
    pending_.answer(*flow);  // nobody waits yet
    return;
  }
  counters_.add(Counter::kAffinityAsked);
  ++opened_in_poll_;
}

template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::answer_owner(std::uint32_t i, const core::FlowTuple& tuple) noexcept {
  const core::Decision decision = core::decide(*tables_->table, flow_of(i, tuple));
  AffinityAnswer& answer = batch_.answers[i];
  answer = {};
  if (decision.verdict == core::FlowVerdict::kForward && decision.affinity_seconds != 0) {
    answer.index = pinned_endpoint(decision, tuple);
    answer.generation = tables_->table->generation();
    answer.picked = answer.index == core::EndpointIndex::kNone
                        ? core::EndpointId::kNone
                        : decision.service->endpoint(answer.index).id;
  }
  hand_over(i, batch_.from[i], Stage::kPicked);
}

/// The packet belongs to a flow whose first one has not come back. @return true: it waits, or there
/// was no room. The first one itself ends the waiting.
template <PacketIo Io, class I4, class I6, WorkerClock C>
bool Worker<Io, I4, I6, C>::waits_for_answer(std::uint32_t i,
                                             const core::FlowTuple& tuple) noexcept {
  if (pending_.used() == 0) [[likely]] {
    return false;
  }
  PendingFlows::Flow* flow = pending_.find(tuple);
  if (flow == nullptr) {
    return false;
  }
  if (batch_.stages[i] == Stage::kPicked) {
    pending_.answer(*flow);
    return false;
  }
  const Packet& p = batch_.packets[i];
  if (!pending_.hold(*flow, {p, batch_.ports[i], (batch_.has_ports >> i & 1) != 0})) {
    drop(p, Counter::kAffinityQueueFull);
  }
  counters_.set(Counter::kHeldAffinity, pending_.held());
  return true;
}

/// What waited, flow by flow, as bursts of their own.
template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::serve_answered() noexcept {
  std::array<PendingFlows::Held, PendingFlows::kPackets> held;
  std::size_t n = pending_.take_answered(held);
  while (n != 0) {
    batch_.open(n);
    for (std::size_t i = 0; i < n; ++i) {
      batch_.packets[i] = held[i].packet;
      batch_.stages[i] = Stage::kOwner;
      batch_.ports[i] = held[i].ports;
      batch_.has_ports |= held[i].has_ports ? PacketBatch::bit(i) : 0;
    }
    counters_.set(Counter::kHeldAffinity, pending_.held());
    serve_batch();
    n = pending_.take_answered(held);
  }
}

template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::expire_pending() noexcept {
  constexpr std::size_t kPerTick = 64;  // all of them in 8 ticks
  pending_.expire(now_, kPerTick,
                  [this](const Packet& packet) { drop(packet, Counter::kAffinityTimeout); });
  counters_.set(Counter::kHeldAffinity, pending_.held());
}

}  // namespace sluice::pipeline
