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
  conn.forward_hash = table.hash(conn.forward);
  conn.reply = conn.forward.reversed();
  conn.epoch = epoch_;
  conn.service = decision.slot;
  conn.endpoint = chosen.id;
  conn.to_client = hop.index;
  conn.mode = mode;
  const core::CreateOutcome outcome = table.create(conn, now_ns_, releaser_);
  if (outcome.result == core::CreateResult::kCreated) {
    core::set_backend(table.entry(outcome.index), chosen.address);
    note_created(i, chosen.id);
  }
  return outcome;
}

template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class F>
void Worker<Io, I4, I6, C>::forward_untouched(std::uint32_t i, core::EntryIndex at) noexcept {
  auto& entry = conns<F>().entry(at);
  const Packet& p = batch_.packets[i];
  const core::ParsedFrame& f = batch_.parsed[i];
  const bool tunnel = entry.mode == core::ForwardingMode::kIpip;
  if (tunnel && f.hop_limit <= 1) {
    answer_ttl_expired(i);
    return;
  }
  Way way;
  if (entry.to_client != NextHopIndex::kNone) {
    way.word = links_.hops.read(entry.to_client);
  }
  way.hop = {entry.to_client, way.word.port(), {}};
  if (way.word.state() != NeighbourState::kReachable) {
    const core::IpAddress backend = core::backend_of(entry);
    way.hop = resolve(backend, true);
    if (!mode_reaches(entry.mode, backend, way.hop)) {
      drop(p, Counter::kConnModeLost);
      return;
    }
    entry.to_client = way.hop.index;
  }
  const std::uint16_t link = port_info(way.hop.port).mtu;
  if (tunnel) {
    send_through_tunnel<F>(i, at, way, link);
  } else if (f.ip_length > link) {
    answer_too_big(i, link);
  } else {
    note_untouched<F>(i, at);
    send_on(p, way);
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
  if (!icmp && (batch_.opened >> i & 1) == 0) {
    advance<F>(at, core::Direction::kForward, f.tcp_flags);
  }
}

template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class F>
void Worker<Io, I4, I6, C>::send_through_tunnel(std::uint32_t i, core::EntryIndex at,
                                                const Way& way, std::uint16_t link) noexcept {
  const core::IpAddress backend = core::backend_of(conns<F>().entry(at));
  const std::uint16_t path = path_mtus_.find(backend, link, now_);
  const std::uint16_t carried = core::tunnel_mtu(path, F::kFamily, backend.family());
  const core::ParsedFrame& f = batch_.parsed[i];
  if (f.ip_length > carried) {
    // Also without "don't fragment": the outer packet has it, and the client may yet learn.
    answer_with_error(i, core::IcmpErrorKind::kTooBig, carried,
                      {Counter::kTooBigAnswered, Counter::kHopTooBig,
                       Counter::kHopTooBigRateLimited});
    return;
  }
  if (f.ip_length + core::tunnel_overhead(backend.family()) > link) {
    drop(batch_.packets[i], Counter::kTunnelTooNarrow);
    return;
  }
  const bool sent = backend.is_v4()
                        ? encapsulate<F, core::Ipv4>(i, at, way, path, tunnel_sources4_)
                        : encapsulate<F, core::Ipv6>(i, at, way, path, tunnel_sources6_);
  if (!sent) {
    drop(batch_.packets[i], Counter::kTunnelNoSource);
  }
}

/// @return false: no address to send from, or no room in the buffer; the packet is the caller's.
template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class F, class Outer>
bool Worker<Io, I4, I6, C>::encapsulate(std::uint32_t i, core::EntryIndex at, const Way& way,
                                        std::uint16_t path,
                                        const TunnelSources<Outer>& sources) noexcept {
  constexpr std::uint32_t kOverhead = core::tunnel_overhead(Outer::kFamily);
  const auto& entry = conns<F>().entry(at);
  Packet& p = batch_.packets[i];
  const core::ParsedFrame& f = batch_.parsed[i];
  const std::uint64_t hash = tunnel_hash<F>(entry.client, entry.client_port);
  core::OuterHeader<Outer> outer;
  if (!sources.choose(way.hop.port, hash, outer.src)) {
    return false;
  }
  outer.dst = address_as<Outer>(core::backend_of(entry));
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
  note_untouched<F>(i, at);
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
    if (owner.cls == FlowClass::kNone || owner.worker == config_.index ||
        batch_.stages[i] >= Stage::kOwner) {
      return false;
    }
    hand_over(i, owner.worker, Stage::kOwner);
    return true;
  }
  const auto& entry = conns<F>().entry(found.index);
  if (entry.mode != core::ForwardingMode::kIpip || found.direction != core::Direction::kForward ||
      core::backend_of(entry) != error.outer_dst) {
    return false;
  }
  learn_path_mtu(error);
  tell_client<F>(i, error, core::IpAddress(entry.client));
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
