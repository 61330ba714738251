#pragma once

// Stage: out by a port, to the host, or away. Every frame ends in one of these functions, each of
// which counts it once. Included by worker.h.

#include "dataplane/pipeline/worker.h"

namespace sluice::pipeline {

/// Where to send what is meant for `to`, a backend or not. Once per new flow, and when the epoch
/// moved.
template <PacketIo Io, class I4, class I6, WorkerClock C>
auto Worker<Io, I4, I6, C>::resolve(const core::IpAddress& to, bool backend) noexcept -> Hop {
  if (!backend) {
    return look_up_hop(to, false);
  }
  if (const Hop* known = backend_hops_.find(to); known != nullptr) {
    return *known;
  }
  const Hop hop = look_up_hop(to, true);
  backend_hops_.keep(to, hop);
  return hop;
}

template <PacketIo Io, class I4, class I6, WorkerClock C>
auto Worker<Io, I4, I6, C>::look_up_hop(const core::IpAddress& to, bool backend) const noexcept
    -> Hop {
  const Route* route = route_of(*tables_, to);
  if (route == nullptr) {
    return {kHostHop, PortIndex::kNone, to, true};
  }
  const bool gateway = route->gateway.has_value();
  const core::IpAddress& via = gateway ? *route->gateway : to;
  return {links_.hops.find(route->port, via), route->port, via, backend || gateway};
}

/// Sends a translated packet. Unknown neighbours are asked for while the packet waits.
template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::send(const Packet& packet, const Hop& hop) noexcept {
  if (hop.index == NextHopIndex::kNone) {
    wait_for_neighbour(packet, hop);
    return;
  }
  const NextHopWord word = links_.hops.read(hop.index);
  switch (word.state()) {
    case NeighbourState::kReachable:
      put_on_wire(packet, word);
      return;
    case NeighbourState::kHost:
      leave_to_host(packet);
      return;
    case NeighbourState::kFailed:
      if (failed_asked_at_ != now_) {
        failed_asked_at_ = now_;
        (void)ask_for({hop.port, hop.via, hop.vouched, false});  // once a tick: it may have come back
      }
      drop(packet, Counter::kHopFailed);
      return;
    case NeighbourState::kUnused:
    case NeighbourState::kUnresolved:
      wait_for_neighbour(packet, hop);
      return;
  }
}

template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::wait_for_neighbour(const Packet& packet, const Hop& hop) noexcept {
  HopQueue::Waiting* const waits = waiting_.add(
      hop, packet, now_, [this](const Packet& p) { drop(p, Counter::kHopQueueEvicted); });
  if (waits == nullptr) {
    drop(packet, Counter::kHopQueueFull);
    return;
  }
  if (waits->count == 1) {
    ask_again(*waits);
  }
  counters_.set(Counter::kHeldNeighbour, waiting_.held());
}

/// @return false: the ring is full. Addresses that anybody may have made up get half of it.
template <PacketIo Io, class I4, class I6, WorkerClock C>
bool Worker<Io, I4, I6, C>::ask_for(const NeighbourRequest& wanted) noexcept {
  NeighbourRequestRing& ring = links_.requests;
  const bool real = wanted.vouched || wanted.seen;
  const bool asked = (real || ring.size() < ring.capacity() / 2) && ring.push(wanted);
  counters_.add(asked ? Counter::kHopRequested : Counter::kHopRequestLost);
  return asked;
}

/// For a neighbour that packets wait for: the mirror may have had too much to do, or the ring none
/// to spare, so it is asked for until it answers.
template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::ask_again(HopQueue::Waiting& waits) noexcept {
  constexpr core::Tick kPause = core::ticks_of_ms(200);
  const bool asked = ask_for({waits.port, waits.address, waits.vouched, false});
  waits.ask_at = now_ + (asked ? kPause : 1);
}

/// Both Ethernet addresses in two stores; the EtherType stays.
template <PacketIo Io, class I4, class I6, WorkerClock C>
inline void Worker<Io, I4, I6, C>::put_on_wire(const Packet& packet, NextHopWord word) noexcept {
  constexpr std::uint64_t kMacMask = (std::uint64_t{1} << 48) - 1;
  const FastPort& out = fast_port(word.port());
  const std::uint64_t head = (word.raw & kMacMask) | out.source_mac;
  std::uint8_t* const data = packet.data;
  std::memcpy(data, &head, 8);
  std::memcpy(data + 8, &out.source_tail, 4);
  io_.transmit(word.port(), packet);
  ++queued_;
}

template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::give_to_host(const Packet& packet, Counter why) noexcept {
  if (io_.to_host(packet)) {
    counters_.add(why);
  } else {
    drop(packet, Counter::kHostRingFull);
  }
}

/// A translated packet whose way only the host knows. The tap takes what is for its own address.
template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::leave_to_host(const Packet& packet) noexcept {
  port_info(packet.port).mac.store(packet.data);
  give_to_host(packet, Counter::kHostNoRoute);
}

/// Not ours: what came from the wire goes to the host, what the host sent leaves by the port. Both
/// unchanged.
template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::pass(std::uint32_t i, Counter why) noexcept {
  const Packet& p = batch_.packets[i];
  if (p.origin == Origin::kWire) {
    give_to_host(p, why);
  } else {
    io_.transmit(p.port, p);
    ++queued_;
  }
}

template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::drop(const Packet& packet, Counter why) noexcept {
  counters_.add(why);
  io_.drop(packet);
}

}  // namespace sluice::pipeline
