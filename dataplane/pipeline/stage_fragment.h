#pragma once

// Stage: fragments (owner procedure, step 1). The pieces of a datagram meet at one worker, get the
// ports of the first one there, and go on from step 3 like any packet of that flow, to its owner if
// need be. Included by worker.h.

#include "dataplane/pipeline/worker.h"

namespace sluice::pipeline {

[[nodiscard]] inline bool has_ports(std::uint8_t protocol) noexcept {
  return protocol == core::kIpProtoTcp || protocol == core::kIpProtoUdp ||
         protocol == core::kIpProtoSctp;
}

[[nodiscard]] inline FragmentPorts ports_of(const core::ParsedFrame& f) noexcept {
  return f.family == core::Family::kIpv4 ? FragmentPorts{f.key4.sport, f.key4.dport, f.protocol}
                                         : FragmentPorts{f.key6.sport, f.key6.dport, f.protocol};
}

template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::serve_fragment(std::uint32_t i) noexcept {
  if ((batch_.has_ports >> i & 1) != 0) {
    serve_piece(i, batch_.ports[i]);  // handed over by the worker where the pieces met
    return;
  }
  const Packet& p = batch_.packets[i];
  const core::ParsedFrame& f = batch_.parsed[i];
  const core::FragmentInfo piece = core::fragment_info(p.data, f);
  if (f.family == core::Family::kIpv4 && !has_ports(piece.protocol)) {
    pass(i, Counter::kHostFragment);
    return;
  }
  const std::size_t meets_at =
      links_.owners.of_fragment(piece.src, piece.dst, piece.id, piece.protocol);
  if (meets_at != config_.index && batch_.stages[i] < Stage::kFragment) {
    hand_over(i, meets_at, Stage::kFragment);
    return;
  }
  FragmentTable::Datagram* datagram = fragments_.find_or_add(piece, now_);
  if (datagram == nullptr) {
    drop(p, Counter::kFragmentTableFull);
    return;
  }
  if (piece.offset == 0 && datagram->state == FragmentTable::State::kWaiting) {
    datagram->state =
        piece.has_ports ? FragmentTable::State::kPorts : FragmentTable::State::kForeign;
    datagram->ports = ports_of(f);
  }
  serve_piece_of(i, *datagram);
  counters_.set(Counter::kHeldFragments, fragments_.held());
}

/// Serves or holds a piece; the first one brings along those that waited, in their order.
template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::serve_piece_of(std::uint32_t i,
                                           FragmentTable::Datagram& datagram) noexcept {
  if (datagram.state == FragmentTable::State::kWaiting) {
    if (!fragments_.hold(datagram, batch_.packets[i])) {
      drop(batch_.packets[i], Counter::kFragmentOverflow);
    }
    return;
  }
  const bool ours = datagram.state == FragmentTable::State::kPorts;
  const FragmentPorts ports = datagram.ports;
  bool more = true;
  while (more) {
    if (ours) {
      serve_piece(i, ports);
    } else {
      pass(i, Counter::kHostFragment);
    }
    Packet& place = batch_.packets[i];  // free again
    more = fragments_.take_held(datagram, place);
    if (more) {
      core::parse_frame(place.data, place.contiguous, place.total, batch_.parsed[i]);
    }
  }
  if (FragmentTable::complete(datagram)) {
    fragments_.forget(datagram);
  }
}

/// One piece with the ports of its datagram, from step 3 on.
template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::serve_piece(std::uint32_t i, const FragmentPorts& ports) noexcept {
  core::ParsedFrame& f = batch_.parsed[i];
  batch_.ports[i] = ports;
  batch_.has_ports |= PacketBatch::bit(i);
  changed_ = true;  // it was not in the bulk lookup
  f.protocol = ports.protocol;
  if (f.family == core::Family::kIpv4) {
    f.key4.sport = ports.sport;
    f.key4.dport = ports.dport;
    f.key4.proto = ports.protocol;
    batch_.hashes[i] = conns4_.hash(f.key4);
    serve_miss<core::Ipv4>(i);
  } else {
    f.key6.sport = ports.sport;
    f.key6.dport = ports.dport;
    f.key6.proto = ports.protocol;
    batch_.hashes[i] = conns6_.hash(f.key6);
    serve_miss<core::Ipv6>(i);
  }
}

template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::expire_fragments() noexcept {
  fragments_.expire(now_, kFragmentsPerTick,
                    [this](const Packet& packet) { drop(packet, Counter::kFragmentTimeout); });
  counters_.set(Counter::kHeldFragments, fragments_.held());
}

}  // namespace sluice::pipeline
