#pragma once

// Stage: flows whose answers go past this node. Included by worker.h.
//
// dr: the packet stays as it is, TTL included, and only its Ethernet addresses change; the backend
// is on the link and has the VIP itself. ipip: the packet travels inside another one to the
// backend, wherever that is. In both the client's packets are all this node ever sees, so there is
// no reply key, and the connection's state follows the client alone (core/conn/states.h).
//
// The next hop is kept in the entry's to_client, and to_backend stays kNone: so forward_plain()
// never takes such a packet, and flows that are translated pay nothing for these modes.

#include "dataplane/core/net/encapsulate.h"
#include "dataplane/pipeline/worker.h"

namespace sluice::pipeline {

/// dr has to reach the backend itself, not by a router; what the host delivers is out of reach of
/// both modes.
[[nodiscard]] inline bool mode_reaches(core::ForwardingMode mode, const core::IpAddress& backend,
                                       const ResolvedHop& hop) noexcept {
  return hop.index != kHostHop && (mode != core::ForwardingMode::kDr || hop.via == backend);
}

/// Creates the connection of a flow in mode dr or ipip. @return kReplyClash, which such a flow
/// cannot have otherwise: this endpoint is out of the mode's reach.
template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class F>
core::CreateOutcome Worker<Io, I4, I6, C>::try_untouched(std::uint32_t i,
                                                         const core::Decision& decision,
                                                         const core::Endpoint& chosen,
                                                         core::ForwardingMode mode) noexcept {
  auto& table = conns<F>();
  const Hop hop = resolve(chosen.address, true);
  if (!mode_reaches(mode, chosen.address, hop)) {
    return {core::CreateResult::kReplyClash, core::EntryIndex::kNone, core::Direction::kForward};
  }
  core::NewConn<F> conn;
  conn.forward = key_of<F>(i);
  conn.forward_hash = batch_.hashes[i];
  conn.forward_is_absent = true;
  conn.reply = conn.forward.reversed();
  conn.epoch = epoch_;
  conn.service = decision.slot;
  conn.endpoint = chosen.id;
  conn.to_client = hop.index;
  conn.mode = mode;
  const core::CreateOutcome outcome = table.create(conn, now_ns_, releaser_);
  if (outcome.result() == core::CreateResult::kCreated) {
    core::set_backend(table.entry(outcome.index()), chosen.address);
    note_created(i, chosen.id);
  }
  return outcome;
}

/// The plain packet of an established flow, as forward_plain() has it for those that are translated.
/// @return false: anything else, nothing was done.
template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class F>
inline bool Worker<Io, I4, I6, C>::forward_one_way(std::uint32_t i, core::KeyData hit) noexcept {
  auto& entry = conns<F>().entry(hit.entry());
  const core::ParsedFrame& f = batch_.parsed[i];
  const Packet& p = batch_.packets[i];
  const bool plain = !core::sees_replies(entry.mode) && is_current(entry) &&
                     core::is_steady(entry.state, f.tcp_flags) &&
                     entry.to_client != NextHopIndex::kNone;
  if (!plain) {
    return false;
  }
  const NextHopWord word = links_.hops.read(entry.to_client);
  if (word.state() != NeighbourState::kReachable) {
    return false;
  }
  if (entry.mode == core::ForwardingMode::kIpip) {
    if (!forward_tunnelled<F>(i, entry, word)) {
      return false;
    }
  } else {
    if (p.total > fast_port(word.port()).max_frame) {
      return false;
    }
    put_on_wire(p, word);
  }
  entry.last_seen = now_;
  return true;
}

/// Through a tunnel of the packet's own family on a path of which no router has complained.
template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class F>
inline bool Worker<Io, I4, I6, C>::forward_tunnelled(std::uint32_t i,
                                                     const typename Conns<F>::Hot& entry,
                                                     NextHopWord word) noexcept {
  constexpr std::uint32_t kOverhead = core::tunnel_overhead(F::kFamily);
  Packet& p = batch_.packets[i];
  const core::ParsedFrame& f = batch_.parsed[i];
  const std::uint32_t length = std::uint32_t{f.l3_offset} + f.ip_length;
  const FastPort& out = fast_port(word.port());
  core::OuterHeader<F> outer;
  const std::uint64_t hash = tunnel_hash<F>(entry.client(), entry.forward().sport);
  if ((entry.flags & core::kEntryOtherFamily) != 0 || path_mtus_.any() || f.hop_limit <= 1 ||
      length + kOverhead > out.max_frame ||
      !tunnel_sources<F>().choose(word.port(), hash, outer.src)) {
    return false;
  }
  if (p.total > length) {
    (void)io_.resize(p, length);  // Ethernet's padding stays behind
  }
  if (!io_.prepend(p, kOverhead)) {
    return false;
  }
  outer.dst = entry.reply().src;
  outer.label = static_cast<std::uint32_t>(hash);
  core::write_tunnel_headers<F, F>(p.data, f.ip_length, outer);
  put_on_wire(p, word);
  return true;
}

template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class F>
void Worker<Io, I4, I6, C>::forward_untouched(std::uint32_t i, core::EntryIndex at) noexcept {
  auto& entry = conns<F>().entry(at);
  const Untouched<F> flow{at, entry.mode, core::backend_of(entry), entry.client(),
                          entry.forward().sport};
  if (flow.mode == core::ForwardingMode::kIpip && batch_.parsed[i].hop_limit <= 1) {
    answer_ttl_expired(i);
    return;
  }
  Way way;
  if (entry.to_client != NextHopIndex::kNone) {
    way.word = links_.hops.read(entry.to_client);
  }
  way.hop = {entry.to_client, way.word.port(), {}};
  if (way.word.state() != NeighbourState::kReachable) {
    way.hop = resolve(flow.backend, true);
    if (!mode_reaches(flow.mode, flow.backend, way.hop)) {
      drop(batch_.packets[i], Counter::kConnModeLost);
      return;
    }
    entry.to_client = way.hop.index;
  }
  send_untouched<F>(i, flow, way);
}

/// The same endpoint for every packet of a flow, and the one open_flow() comes to: where the Service
/// lets others stand in, one that is out of the mode's reach gives way to the next.
template <PacketIo Io, class I4, class I6, WorkerClock C>
auto Worker<Io, I4, I6, C>::way_by_hash(const core::Decision& decision,
                                        core::EndpointIndex first) noexcept -> HashedWay {
  HashedWay to;
  if (first == core::EndpointIndex::kNone) {
    return to;
  }
  to.mode = core::asked_mode(decision);
  const std::size_t others = other_candidates(decision);
  for (std::size_t n = 0; n <= others && !to.reached; ++n) {
    const auto at = n == 0 ? first : candidate_after(decision, first, n - 1);
    to.endpoint = &decision.service->endpoint(at);
    to.hop = resolve(to.endpoint->address, true);
    to.reached = mode_reaches(to.mode, to.endpoint->address, to.hop);
  }
  return to;
}

/// For packets that are about a flow without being of it.
template <PacketIo Io, class I4, class I6, WorkerClock C>
auto Worker<Io, I4, I6, C>::way_without_entry(std::uint32_t i,
                                              const core::FlowTuple& tuple) noexcept
    -> HashedWay {
  const core::Decision decision = core::decide(*tables_->table, flow_of(i, tuple));
  if (decision.verdict != core::FlowVerdict::kForward || !needs_no_entry(decision)) {
    return {};
  }
  return way_by_hash(decision, core::pick(decision, tuple, now_ns_, scheduler_));
}

template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class F>
void Worker<Io, I4, I6, C>::forward_without_entry(std::uint32_t i, const core::Decision& decision,
                                                  core::EndpointIndex first) noexcept {
  const HashedWay to = way_by_hash(decision, first);
  if (to.endpoint == nullptr) {
    drop(batch_.packets[i], Counter::kConnNoCandidate);
  } else if (!to.reached) {
    refuse_obstructed(i, decision, decision.service->endpoint(first), Obstacle::kOutOfReach);
  } else {
    send_by_hash<F>(i, key_of<F>(i), to);
  }
}

/// @param key  of the flow that packet i belongs to, or is about.
template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class F>
void Worker<Io, I4, I6, C>::send_by_hash(std::uint32_t i, const typename F::Key& key,
                                         const HashedWay& to) noexcept {
  if (to.mode == core::ForwardingMode::kIpip && batch_.parsed[i].hop_limit <= 1) {
    answer_ttl_expired(i);
    return;
  }
  counters_.add(Counter::kForwardedWithoutEntry);
  const Untouched<F> flow{core::EntryIndex::kNone, to.mode, to.endpoint->address, key.src,
                          key.sport};
  send_untouched<F>(i, flow, {to.hop, {}});
}

template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class F>
void Worker<Io, I4, I6, C>::send_untouched(std::uint32_t i, const Untouched<F>& flow,
                                           const Way& way) noexcept {
  const std::uint16_t link = port_info(way.hop.port).mtu;
  if (flow.mode == core::ForwardingMode::kIpip) {
    send_through_tunnel<F>(i, flow, way, link);
  } else if (batch_.parsed[i].ip_length > link) {
    answer_too_big(i, link);
  } else {
    note_untouched<F>(i, flow.at);
    send_on(batch_.packets[i], way);
  }
}

template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::send_on(const Packet& packet, const Way& way) noexcept {
  if (way.word.state() == NeighbourState::kReachable) {
    put_on_wire(packet, way.word);
  } else {
    send(packet, way.hop);
  }
}

/// An ICMP error on its way to the backend keeps nothing alive. The packet that made the connection
/// is not another one: where answers are not seen, a second packet is what tells a peer from a flood.
template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class F>
void Worker<Io, I4, I6, C>::note_untouched(std::uint32_t i, core::EntryIndex at) noexcept {
  const core::ParsedFrame& f = batch_.parsed[i];
  const bool icmp = f.kind == core::FrameKind::kIcmp4 || f.kind == core::FrameKind::kIcmp6;
  if (at != core::EntryIndex::kNone && !icmp && (batch_.opened >> i & 1) == 0) {
    advance<F>(at, core::Direction::kForward, f.tcp_flags);
  }
}

template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class F>
void Worker<Io, I4, I6, C>::send_through_tunnel(std::uint32_t i, const Untouched<F>& flow,
                                                const Way& way, std::uint16_t link) noexcept {
  const core::Family outer = flow.backend.family();
  const std::uint16_t path = path_mtus_.find(flow.backend, link, now_);
  const std::uint16_t carried = core::tunnel_mtu(path, F::kFamily, outer);
  const core::ParsedFrame& f = batch_.parsed[i];
  if (f.ip_length > carried) {
    // Also without "don't fragment": the outer packet has it, and the client may yet learn.
    answer_with_error(i, core::IcmpErrorKind::kTooBig, carried,
                      {Counter::kTooBigAnswered, Counter::kHopTooBig,
                       Counter::kHopTooBigRateLimited});
    return;
  }
  if (f.ip_length + core::tunnel_overhead(outer) > link) {
    drop(batch_.packets[i], Counter::kTunnelTooNarrow);
    return;
  }
  const bool sent = flow.backend.is_v4()
                        ? encapsulate<F, core::Ipv4>(i, flow, way, path)
                        : encapsulate<F, core::Ipv6>(i, flow, way, path);
  if (!sent) {
    drop(batch_.packets[i], Counter::kTunnelNoSource);
  }
}

/// @return false: no address to send from, or no room in the buffer; the packet is the caller's.
template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class F, class Outer>
bool Worker<Io, I4, I6, C>::encapsulate(std::uint32_t i, const Untouched<F>& flow, const Way& way,
                                        std::uint16_t path) noexcept {
  constexpr std::uint32_t kOverhead = core::tunnel_overhead(Outer::kFamily);
  Packet& p = batch_.packets[i];
  const core::ParsedFrame& f = batch_.parsed[i];
  const std::uint64_t hash = tunnel_hash<F>(flow.client, flow.client_port);
  core::OuterHeader<Outer> outer;
  if (!tunnel_sources<Outer>().choose(way.hop.port, hash, outer.src)) {
    return false;
  }
  outer.dst = address_as<Outer>(flow.backend);
  outer.label = static_cast<std::uint32_t>(hash);
  // RFC 4213 3.2.2: what IPv6 must be able to send, routers of IPv4 may fragment.
  outer.dont_fragment = f.ip_length + kOverhead <= path;
  outer.id = outer.dont_fragment ? std::uint16_t{0} : ++tunnel_id_;
  if (p.total > std::uint32_t{f.l3_offset} + f.ip_length) {
    (void)io_.resize(p, std::size_t{f.l3_offset} + f.ip_length);  // Ethernet's padding stays behind
  }
  if (!io_.prepend(p, kOverhead)) {
    return false;
  }
  core::write_tunnel_headers<F, Outer>(p.data, f.ip_length, outer);
  note_untouched<F>(i, flow.at);
  send_on(p, way);
  return true;
}

/// An ICMP error about a packet of ours in a tunnel: what it says of the path is learned, and the
/// client is told as if its own packet had met the trouble. @return false: not about a tunnel of
/// ours, or it does not quote enough to say whose packet it was.
template <PacketIo Io, class I4, class I6, WorkerClock C>
bool Worker<Io, I4, I6, C>::serve_tunnel_error(std::uint32_t i) noexcept {
  const Packet& p = batch_.packets[i];
  const core::ParsedFrame& f = batch_.parsed[i];
  core::TunnelError error;
  if (!core::parse_tunnel_error(p.data, p.contiguous, f, error) || error.outer_src != f.dst() ||
      !is_tunnel_source(*tables_, error.outer_src)) {
    return false;
  }
  if (!error.has_flow) {
    learn_path_mtu(error);
    return false;
  }
  return error.inner.family == core::Family::kIpv4 ? serve_tunnel_error_of<core::Ipv4>(i, error)
                                                   : serve_tunnel_error_of<core::Ipv6>(i, error);
}

template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class F>
bool Worker<Io, I4, I6, C>::serve_tunnel_error_of(std::uint32_t i,
                                                  const core::TunnelError& error) noexcept {
  const typename F::Key& key = core::key_of<F>(error.inner);
  const auto found = conns<F>().find(key);
  if (!found) {
    const Ownership owner = owner_of(*tables_, links_.owners, tuple_of(key), false);
    if (owner.cls != FlowClass::kNone && owner.worker != config_.index &&
        batch_.stages[i] < Stage::kOwner) {
      hand_over(i, owner.worker, Stage::kOwner);
      return true;
    }
    return owner.cls == FlowClass::kRequest && serve_tunnel_error_by_hash<F>(i, key, error);
  }
  const auto& entry = conns<F>().entry(found.index);
  if (entry.mode != core::ForwardingMode::kIpip || found.direction != core::Direction::kForward ||
      core::backend_of(entry) != error.outer_dst) {
    return false;
  }
  learn_path_mtu(error);
  tell_client<F>(i, error, core::IpAddress(entry.client()));
  return true;
}

/// A flow without an entry: nothing but hashing says whether the tunnel's packet was one of ours.
template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class F>
bool Worker<Io, I4, I6, C>::serve_tunnel_error_by_hash(std::uint32_t i, const typename F::Key& key,
                                                       const core::TunnelError& error) noexcept {
  const HashedWay to = way_without_entry(i, tuple_of(key));
  if (!to.reached || to.mode != core::ForwardingMode::kIpip ||
      to.endpoint->address != error.outer_dst) {
    return false;
  }
  learn_path_mtu(error);
  tell_client<F>(i, error, core::IpAddress(key.src));
  return true;
}

/// Forged errors cannot push a path below what every path carries.
template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::learn_path_mtu(const core::TunnelError& error) noexcept {
  if (error.kind != core::IcmpErrorKind::kTooBig) {
    return;
  }
  const std::uint16_t least = error.outer_dst.is_v4() ? core::kLeastMtu4 : core::kLeastMtu6;
  const PathMtu learned{error.outer_dst, std::max(error.mtu, least)};
  path_mtus_.learn(learned, now_);
  counters_.add(Counter::kTunnelMtuLearned);
  for (std::size_t worker = 0; worker < config_.workers; ++worker) {
    if (worker != config_.index) {
      (void)links_.rings.path_mtus(config_.index, worker).push(learned);  // full: the next error
    }
  }
}

/// Once a tick: what other workers learned.
template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::take_path_mtus() noexcept {
  for (std::size_t worker = 0; worker < config_.workers; ++worker) {
    PathMtu learned;
    while (worker != config_.index &&
           links_.rings.path_mtus(worker, config_.index).pop(&learned, 1) != 0) {
      path_mtus_.learn(learned, now_);
    }
  }
}

/// Makes the error the client would have got, out of the one about the tunnel. An IPv6 packet that
/// is no longer than 1280 bytes is sent in pieces from now on, so its sender hears nothing.
template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class F>
void Worker<Io, I4, I6, C>::tell_client(std::uint32_t i, const core::TunnelError& error,
                                        const core::IpAddress& client) noexcept {
  Packet& p = batch_.packets[i];
  const core::ParsedFrame& f = batch_.parsed[i];
  const Hop hop = resolve(client, false);
  const std::uint16_t path = path_mtus_.find(error.outer_dst, 0xffff, now_);
  const std::uint16_t mtu = core::tunnel_mtu(path, F::kFamily, error.outer_dst.family());
  const bool useless =
      error.kind == core::IcmpErrorKind::kTooBig && error.inner.ip_length <= mtu;
  const core::IpAddress* own = own_address(*tables_, hop.port, F::kFamily);
  if (useless || own == nullptr) {
    drop(p, Counter::kTunnelErrorUseless);
    return;
  }
  if (!errors_.take(now_)) {
    drop(p, Counter::kHopTooBigRateLimited);
    return;
  }
  std::array<std::uint8_t, core::kMaxIcmpErrorFrame> answer;
  const std::uint32_t end =
      std::min(p.contiguous, std::uint32_t{f.l3_offset} + f.ip_length);
  const std::uint32_t length =
      core::build_icmp_error(p.data, end, error.inner, {error.kind, *own, mtu}, answer.data(),
                             static_cast<std::uint32_t>(answer.size()));
  if (length == 0 || !io_.resize(p, length)) {
    drop(p, Counter::kIcmpBadQuote);
    return;
  }
  std::memcpy(p.data, answer.data(), length);
  counters_.add(Counter::kTunnelErrorTold);
  send(p, hop);
}

}  // namespace sluice::pipeline
