#pragma once

// Stage: answers that refuse or report: TCP reset, ICMP unreachable, time exceeded, too big. They
// are made in the frame that caused them and go back where it came from. ICMP errors are limited
// per worker; resets are not, they are no larger than what they answer. Included by worker.h.

#include "dataplane/core/net/icmp.h"
#include "dataplane/core/net/reject.h"
#include "dataplane/pipeline/worker.h"

namespace sluice::pipeline {

/// Fails fast (N-1).
template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::reject(std::uint32_t i) noexcept {
  const Packet& p = batch_.packets[i];
  const core::ParsedFrame& f = batch_.parsed[i];
  const bool tcp = f.protocol == core::kIpProtoTcp;
  if (!tcp && !core::may_answer_with_error(p.data, f)) {
    drop(p, Counter::kRejectNoAnswer);
    return;
  }
  if (!tcp && !errors_.take(now_)) {
    drop(p, Counter::kRejectRateLimited);
    return;
  }
  std::array<std::uint8_t, core::kMaxIcmpErrorFrame> answer;
  const std::uint32_t length = core::build_reject(p.data, p.contiguous, f, answer.data(),
                                                  static_cast<std::uint32_t>(answer.size()));
  if (send_back(i, {answer.data(), length})) {
    counters_.add(tcp ? Counter::kRejectRst : Counter::kRejectIcmp);
  } else {
    drop(p, Counter::kRejectNoAnswer);
  }
}

template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::answer_ttl_expired(std::uint32_t i) noexcept {
  answer_with_error(i, core::IcmpErrorKind::kTimeExceeded, 0,
                    {Counter::kTtlAnswered, Counter::kTtlExpired, Counter::kTtlRateLimited});
}

/// IPv4 without "don't fragment" is not fragmented here either: it is dropped, counted.
template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::answer_too_big(std::uint32_t i, std::uint16_t mtu) noexcept {
  const Packet& p = batch_.packets[i];
  const core::ParsedFrame& f = batch_.parsed[i];
  const std::uint8_t* ip = p.data + f.l3_offset;
  const bool v4 = f.family == core::Family::kIpv4;
  if (v4 && (core::load_be16(ip + core::ipv4::kFragment) & core::ipv4::kDontFragment) == 0) {
    drop(p, Counter::kHopTooBig);
    return;
  }
  answer_with_error(
      i, core::IcmpErrorKind::kTooBig, mtu,
      {Counter::kTooBigAnswered, Counter::kHopTooBig, Counter::kHopTooBigRateLimited});
}

template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::answer_with_error(std::uint32_t i, core::IcmpErrorKind kind,
                                              std::uint32_t mtu,
                                              const AnswerCounters& count) noexcept {
  const Packet& p = batch_.packets[i];
  const core::ParsedFrame& f = batch_.parsed[i];
  const core::IpAddress* own = own_address(*tables_, p.port, f.family);
  if (own == nullptr || !core::may_answer_with_error(p.data, f)) {
    drop(p, count.not_allowed);
    return;
  }
  if (!errors_.take(now_)) {
    drop(p, count.limited);
    return;
  }
  std::array<std::uint8_t, core::kMaxIcmpErrorFrame> answer;
  const std::uint32_t length =
      core::build_icmp_error(p.data, p.contiguous, f, {kind, *own, mtu}, answer.data(),
                             static_cast<std::uint32_t>(answer.size()));
  if (send_back(i, {answer.data(), length})) {
    counters_.add(count.answered);
  } else {
    drop(p, count.not_allowed);
  }
}

/// Sends `frame` in the buffer of packet i, back to where that came from.
/// @return false: nothing to send or no room; the packet is still the caller's.
template <PacketIo Io, class I4, class I6, WorkerClock C>
bool Worker<Io, I4, I6, C>::send_back(std::uint32_t i,
                                      std::span<const std::uint8_t> frame) noexcept {
  Packet& p = batch_.packets[i];
  if (frame.empty() || !io_.resize(p, frame.size())) {
    return false;
  }
  std::memcpy(p.data, frame.data(), frame.size());
  return_to_sender(i);
  return true;
}

/// The frame is an answer in place: out by the port it came from, or into the tap.
template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::return_to_sender(std::uint32_t i) noexcept {
  const Packet& p = batch_.packets[i];
  if (p.origin == Origin::kHost) {
    give_to_host(p, Counter::kHostAnswer);
  } else {
    io_.transmit(p.port, p);
    ++queued_;
  }
}

}  // namespace sluice::pipeline
