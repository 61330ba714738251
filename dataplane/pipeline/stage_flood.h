#pragma once

// Stage: more frames than a worker can serve, because many open flows. Included by worker.h.
//
// A new flow costs as much as ten packets of a known one, and a ring that overflows loses frames of
// all flows alike. So a worker that cannot keep up (load_watch.h) must be rid of what opens flows
// faster than that comes:
//
//   overload  new_flow_budget flows are opened in a poll. Other packets that would open one are
//             dropped when their lookup has found nothing.
//   flood     One a poll. Other SYNs (of SCTP: INIT) to Services that take anybody are dropped at
//             the door, before anything is hashed, looked up or decided. Among them are those of
//             known flows: one repeated by a client that heard nothing, one for a connection that
//             is over. UDP has no such sign, its datagrams are looked up. Where rules refuse some
//             clients, or all (no endpoints), they have to be asked: a SYN that opens nothing may
//             not have the place of one that does.
//
// A burst that is not full is served whole, so that what time is left goes to new flows. Nothing is
// dropped that is for the host or for another worker, or that opens no flow.

#include "dataplane/pipeline/worker.h"

namespace sluice::pipeline {

/// The flows of this poll, planned ones of both families included, are as many as overload allows.
template <PacketIo Io, class I4, class I6, WorkerClock C>
bool Worker<Io, I4, I6, C>::is_over_budget() const noexcept {
  const std::uint32_t budget = load_.flood() ? 1 : config_.new_flow_budget;
  return load_.overload() && opened_in_poll_ + planned4_.size + planned6_.size >= budget;
}

/// As the loop over parse_and_sort(), without the SYNs that end here.
template <PacketIo Io, class I4, class I6, WorkerClock C>
[[gnu::noinline]] void Worker<Io, I4, I6, C>::parse_at_door() noexcept {
  BatchSizes sizes = batch_.sizes();
  bool let_in = false;
  const std::uint32_t n = batch_.size;
  for (std::uint32_t i = 0; i < n; ++i) {
    if (!parse(i)) [[unlikely]] {
      batch_.others[sizes.others++] = static_cast<std::uint8_t>(i);
    } else if (!ends_at_door(i, let_in)) {
      hash_and_sort(i, true, sizes);
    }
  }
  batch_.set_sizes(sizes);
}

/// A parsed flow packet that is dropped for a flood. @param let_in  one of this burst has been.
template <PacketIo Io, class I4, class I6, WorkerClock C>
[[gnu::always_inline]] inline bool Worker<Io, I4, I6, C>::ends_at_door(std::uint32_t i,
                                                                       bool& let_in) noexcept {
  const core::ParsedFrame& f = batch_.parsed[i];
  if (!core::is_opening(f.tcp_flags)) {
    return false;
  }
  const bool opens =
      f.kind == core::FrameKind::kFlow4 ? opens_here<core::Ipv4>(i) : opens_here<core::Ipv6>(i);
  if (!opens || !let_in) {
    let_in = let_in || opens;
    return false;
  }
  drop(batch_.packets[i], Counter::kConnNewFlowBudget);
  return true;
}

/// What the packet opens, if it opens a flow, is a flow of this worker to a Service that takes it.
template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class F>
[[gnu::always_inline]] inline bool Worker<Io, I4, I6, C>::opens_here(std::uint32_t i) noexcept {
  const typename F::Key& key = key_of<F>(i);
  const ServiceAddresses::Word word = ServiceAddresses::word_of(key);
  if (!service_addresses_.has(word) && !find_service<F>(i, word)) {
    return false;
  }
  return batch_.stages[i] >= Stage::kOwner ||
         links_.owners.of_client(core::IpAddress(key.src), key.sport) == config_.index;
}

/// Asks the table. @return true: the packet's destination leads to a Service that takes anybody.
template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class F>
[[gnu::noinline]] bool Worker<Io, I4, I6, C>::find_service(std::uint32_t i,
                                                           ServiceAddresses::Word word) noexcept {
  const core::FlowTuple tuple = tuple_of(key_of<F>(i));
  const core::Decision decision = core::decide(*tables_->table, flow_of(i, tuple));
  if (!core::takes_any_source(decision)) {
    return false;
  }
  service_addresses_.keep(word);
  return true;
}

/// Beyond the budget most packets that were not found end here, before anything is decided about
/// them. What goes on: packets for the host, for another worker, of flows that wait or are planned,
/// and all that open no flow. @return true: served.
template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class F>
[[gnu::noinline]] bool Worker<Io, I4, I6, C>::drops_early(std::uint32_t i) noexcept {
  const core::ParsedFrame& f = batch_.parsed[i];
  const bool opens = core::is_opening(f.tcp_flags) ||
                     (f.protocol == core::kIpProtoUdp && f.l4_offset != 0);
  const Stage stage = batch_.stages[i];
  const bool asked = stage == Stage::kKnown || stage == Stage::kHome || stage == Stage::kPicked;
  if (!opens || asked || !opens_here<F>(i)) {
    return false;
  }
  if (waits_for_answer(i, tuple_of(key_of<F>(i))) || settle<F>(i)) {
    return true;
  }
  if (!is_over_budget()) {  // of those planned not all may have become flows
    return false;
  }
  drop(batch_.packets[i], Counter::kConnNewFlowBudget);
  return true;
}

}  // namespace sluice::pipeline
