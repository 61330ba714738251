#pragma once

// Stage: ARP and neighbour discovery. Requests for announced addresses are answered by whichever
// worker gets them; everything else is the host's, which also learns from it. Worker 0 tells the
// links of addresses that have become ours. Cluster IPs are never announced, so never answered.
// Included by worker.h.

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
    if (send_back(i, answer)) {
      counters_.add(Counter::kNdAnswered);
      return;
    }
  }
  pass(i, Counter::kHostArpNd);
}

/// Addresses that appeared in a later view than the last one told of are told three times.
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
    appeared = appeared || a.since > announcing_upto_;
  }
  announcing_upto_ = sequence_;
  announce_next_ = 0;
  if (appeared) {
    announce_rounds_ = kAnnounceRounds;
    announce_at_ = now_;
  }
}

/// Once a tick: at most kAnnounceBurst addresses, the rounds a second apart.
template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::announce() noexcept {
  if (announce_rounds_ == 0 || tables_ == nullptr ||
      static_cast<std::int32_t>(now_ - announce_at_) < 0) {
    return;
  }
  const auto& list = *tables_->announced;
  std::uint32_t left = kAnnounceBurst;
  while (announce_next_ < list.size() && left != 0) {
    const Announced& a = list[announce_next_++];
    if (a.since > announced_upto_) {
      announce_address(a.address);
      --left;
    }
  }
  if (announce_next_ < list.size()) {
    return;
  }
  announce_next_ = 0;
  announce_at_ = now_ + core::ticks_of_ms(1000);
  if (--announce_rounds_ == 0) {
    announced_upto_ = announcing_upto_;
  }
}

/// On the port whose link the address lies on; on every port when it lies on none.
template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::announce_address(const core::IpAddress& address) noexcept {
  const Route* route = tables_->routes->find(address);
  const bool on_link = route != nullptr && !route->gateway.has_value();
  for (std::size_t p = 0; p < kMaxPorts; ++p) {
    const auto port = static_cast<PortIndex>(p);
    if (port_info(port).present && (!on_link || route->port == port)) {
      announce_on(port, address);
    }
  }
}

template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::announce_on(PortIndex port, const core::IpAddress& address) noexcept {
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
        (announce_rounds_ & 1) != 0 ? core::GratuitousForm::kRequest : core::GratuitousForm::kReply;
    core::build_gratuitous_arp(p.data, address.v4(), own, form);
  } else {
    core::build_unsolicited_advertisement(p.data, address.v6(), own);
  }
  io_.transmit(port, p);
  ++queued_;
  counters_.add(Counter::kAnnounced);
}

}  // namespace sluice::pipeline
