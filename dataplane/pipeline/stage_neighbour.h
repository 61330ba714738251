#pragma once

// Stage: ARP and neighbour discovery. Requests for announced addresses are answered by whichever
// worker gets them; everything else is the host's, which also learns from it. Worker 0 tells the
// links of addresses that have become ours. Cluster IPs are never announced, so never answered.
// Included by worker.h.

#include <algorithm>

#include "dataplane/core/net/arp_nd.h"
#include "dataplane/pipeline/worker.h"

namespace sluice::pipeline {

template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::serve_arp(std::uint32_t i) noexcept {
  const Packet& p = batch_.packets[i];
  const auto arp = core::parse_arp(p.data);
  if (p.origin == Origin::kWire && arp.has_value() &&
      arp->operation == core::ArpOperation::kRequest &&
      find_announced(*tables_, core::IpAddress(arp->target)) != nullptr) {
    note_asker(p.port, core::IpAddress(arp->sender));
    core::make_arp_reply(p.data, port_info(p.port).mac);
    counters_.add(Counter::kArpAnswered);
    return_to_sender(i);
    return;
  }
  pass(i, Counter::kHostArpNd);
}

template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::serve_nd(std::uint32_t i) noexcept {
  const Packet& p = batch_.packets[i];
  const core::ParsedFrame& f = batch_.parsed[i];
  if (p.origin == Origin::kWire && f.hop_limit != 255) {
    drop(p, Counter::kNdInvalid);  // it came through a router (RFC 4861 7.1.1)
    return;
  }
  const auto asked = core::parse_neighbor_solicitation(p.data, p.contiguous, f);
  if (p.origin == Origin::kWire && asked.has_value() &&
      find_announced(*tables_, core::IpAddress(asked->target)) != nullptr) {
    std::array<std::uint8_t, core::kNeighborAdvertisementLength> answer;
    core::build_neighbor_advertisement(answer.data(), *asked, port_info(p.port).mac);
    note_asker(p.port, core::IpAddress(asked->src));
    if (send_back(i, answer)) {
      counters_.add(Counter::kNdAnswered);
      return;
    }
  }
  pass(i, Counter::kHostArpNd);
}

/// Who asks for an announced address will soon be sent answers. It is asked for now, as one that
/// exists: during a flood from made-up addresses it would have to be lucky later.
template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::note_asker(PortIndex port, const core::IpAddress& asker) noexcept {
  const Hop hop = resolve(asker, false);
  if (hop.index == NextHopIndex::kNone && hop.port == port && hop.via == asker &&
      !asker.is_unspecified()) {
    (void)ask_for({port, asker, false, true});
  }
}

/// Addresses that appeared in a later view than the last one told of are told three times. Further
/// views change nothing about those under way; when all places are taken the addresses wait for
/// one.
template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::plan_announcements() noexcept {
  bool any_port = false;
  for (const PortInfo& port : *tables_->ports) {
    any_port = any_port || port.present;
  }
  if (config_.index != 0 || !any_port) {
    return;
  }
  bool appeared = false;
  for (const Announced& a : *tables_->announced) {
    appeared = appeared || a.since > announced_upto_;
  }
  if (!appeared) {
    announced_upto_ = sequence_;
    return;
  }
  for (Announcement& a : announcements_) {
    if (a.rounds == 0) {
      a = {announced_upto_, sequence_, kAnnounceRounds, 0, false, {}};
      announced_upto_ = sequence_;
      return;
    }
  }
}

/// Once a tick: at most kAnnounceBurst addresses, the rounds of each a second apart.
template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::announce() noexcept {
  std::uint32_t left = kAnnounceBurst;
  for (Announcement& a : announcements_) {
    const bool due =
        a.rounds == kAnnounceRounds || static_cast<std::int32_t>(now_ - a.next_round) >= 0;
    if (a.rounds == 0 || !due || left == 0) {
      continue;
    }
    left -= announce_some(a, left);
    if (a.rounds == 0) {
      plan_announcements();  // for those that wait for a place
    }
  }
}

/// Goes on where it stopped, by address: the list may be another one by now.
/// @return how many it told of, at most `limit`.
template <PacketIo Io, class I4, class I6, WorkerClock C>
std::uint32_t Worker<Io, I4, I6, C>::announce_some(Announcement& a, std::uint32_t limit) noexcept {
  const auto& list = *tables_->announced;
  const auto before = [](const core::IpAddress& x, const Announced& y) { return x < y.address; };
  auto next = a.begun ? std::upper_bound(list.begin(), list.end(), a.last, before) : list.begin();
  std::uint32_t told = 0;
  for (; next != list.end() && told < limit; ++next) {
    a.begun = true;
    a.last = next->address;
    if (next->since > a.after && next->since <= a.upto) {
      announce_address(next->address, a.rounds);
      ++told;
    }
  }
  if (next == list.end()) {
    a.begun = false;
    a.next_round = now_ + core::ticks_of_ms(1000);
    --a.rounds;
  }
  return told;
}

/// On the port whose link the address lies on; on every port when it lies on none.
template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::announce_address(const core::IpAddress& address,
                                             std::uint32_t round) noexcept {
  const Route* route = tables_->routes->find(address);
  const bool on_link = route != nullptr && !route->gateway.has_value();
  for (std::size_t p = 0; p < kMaxPorts; ++p) {
    const auto port = static_cast<PortIndex>(p);
    if (port_info(port).present && (!on_link || route->port == port)) {
      announce_on(port, address, round);
    }
  }
}

template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::announce_on(PortIndex port, const core::IpAddress& address,
                                        std::uint32_t round) noexcept {
  const std::uint32_t length =
      address.is_v4() ? core::kArpFrameLength : core::kNeighborAdvertisementLength;
  Packet p;
  if (!io_.allocate(port, p)) {
    counters_.add(Counter::kAnnounceNoBuffer);
    return;
  }
  p.port = port;
  counters_.add(Counter::kRxGenerated);
  if (!io_.resize(p, length)) {
    drop(p, Counter::kShutdownDropped);
    return;
  }
  const core::MacAddress& own = port_info(port).mac;
  if (address.is_v4()) {
    const auto form =
        (round & 1) != 0 ? core::GratuitousForm::kRequest : core::GratuitousForm::kReply;
    core::build_gratuitous_arp(p.data, address.v4(), own, form);
  } else {
    core::build_unsolicited_advertisement(p.data, address.v6(), own);
  }
  io_.transmit(port, p);
  ++queued_;
  counters_.add(Counter::kAnnounced);
}

}  // namespace sluice::pipeline
