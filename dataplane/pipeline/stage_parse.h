#pragma once

// Stage: what each frame is. Ordinary flows go to the lists of their family, the rest to `others`.
// Included by worker.h.

#include "dataplane/core/net/partial_checksum.h"
#include "dataplane/pipeline/worker.h"

namespace sluice::pipeline {

/// Hashes each key at once: what its lookup reads comes while the rest of the burst is parsed.
template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::parse_batch() noexcept {
  constexpr std::uint64_t kMacMask = (std::uint64_t{1} << 48) - 1;
  std::uint32_t flows4 = 0;
  std::uint32_t flows6 = 0;
  std::uint32_t others = 0;
  const std::uint32_t n = batch_.size;
  for (std::uint32_t i = 0; i < n; ++i) {
    const Packet& p = batch_.packets[i];
    core::ParsedFrame& f = batch_.parsed[i];
    core::parse_frame_inline(p.data, p.contiguous, p.total, f);
    const auto place = static_cast<std::uint8_t>(i);
    const bool flow = f.kind == core::FrameKind::kFlow4 || f.kind == core::FrameKind::kFlow6;
    const std::uint64_t own = fast_[static_cast<std::size_t>(p.port) % kMaxPorts].own_mac;
    if (!flow || ((core::load_raw64(p.data) & kMacMask) != own && p.origin == Origin::kWire))
        [[unlikely]] {
      batch_.others[others++] = place;
    } else if (f.kind == core::FrameKind::kFlow4) {
      batch_.hashes4[flows4] = conns4_.hash_ahead(f.key4);
      batch_.flows4[flows4++] = place;
    } else {
      batch_.hashes6[flows6] = conns6_.hash_ahead(f.key6);
      batch_.flows6[flows6++] = place;
    }
  }
  batch_.flows4_size = flows4;
  batch_.flows6_size = flows6;
  batch_.others_size = others;
  misses_size_ = 0;
  changed_ = false;
  if (partial_csum_ != 0) {
    complete_checksums();
  }
}

template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::complete_checksums() noexcept {
  for (std::uint32_t k = 0; k < batch_.flows4_size; ++k) {
    complete_checksum(batch_.flows4[k]);
  }
  for (std::uint32_t k = 0; k < batch_.flows6_size; ++k) {
    complete_checksum(batch_.flows6[k]);
  }
}

/// core/net/partial_checksum.h tells why.
template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::complete_checksum(std::uint32_t i) noexcept {
  const Packet& p = batch_.packets[i];
  const core::ParsedFrame& f = batch_.parsed[i];
  const bool fed_by_kernel = (partial_csum_ >> static_cast<unsigned>(p.port) & 1) != 0;
  if (!fed_by_kernel || p.origin == Origin::kHost || batch_.stages[i] != Stage::kFresh ||
      !core::checksum_is_partial(p.data, f)) {
    return;
  }
  if (std::uint32_t{f.l3_offset} + f.ip_length <= p.contiguous) {
    core::complete_checksum(p.data, f);
    counters_.add(Counter::kRxPartialCsum);
  } else {
    counters_.add(Counter::kRxPartialCsumSegmented);
  }
}

template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::serve_others() noexcept {
  for (std::uint32_t k = 0; k < batch_.others_size; ++k) {
    serve_other(batch_.others[k]);
  }
}

[[nodiscard]] inline Counter counter_of(core::ParseError error) noexcept {
  switch (error) {
    case core::ParseError::kNone:
    case core::ParseError::kTruncatedEthernet:
      return Counter::kParseTruncatedEthernet;
    case core::ParseError::kTruncatedIp:
      return Counter::kParseTruncatedIp;
    case core::ParseError::kTruncatedL4:
      return Counter::kParseTruncatedL4;
    case core::ParseError::kTruncatedFrame:
      return Counter::kParseTruncatedFrame;
    case core::ParseError::kBadIpVersion:
      return Counter::kParseBadIpVersion;
    case core::ParseError::kBadIpChecksum:
      return Counter::kParseBadIpChecksum;
    case core::ParseError::kMartian:
      return Counter::kParseMartian;
    case core::ParseError::kForbiddenHeader:
      return Counter::kParseForbiddenHeader;
  }
  return Counter::kParseTruncatedEthernet;
}

template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::serve_other(std::uint32_t i) noexcept {
  const core::ParsedFrame& f = batch_.parsed[i];
  const Packet& p = batch_.packets[i];
  if (f.kind == core::FrameKind::kBad) {
    drop(p, counter_of(f.error));
    return;
  }
  if (f.kind == core::FrameKind::kArp) {
    serve_arp(i);
    return;
  }
  if (f.kind == core::FrameKind::kNd) {
    serve_nd(i);
    return;
  }
  core::MacAddress to = core::MacAddress::load(p.data);
  if (p.origin == Origin::kWire && to != port_info(p.port).mac) {
    pass(i, Counter::kHostForeignMac);  // multicast, broadcast, or flooded by a switch
    return;
  }
  switch (f.kind) {
    case core::FrameKind::kIcmp4:
    case core::FrameKind::kIcmp6:
      serve_icmp(i);
      return;
    case core::FrameKind::kFragment4:
    case core::FrameKind::kFragment6:
      serve_fragment(i);
      return;
    default:
      pass(i, Counter::kHostOther);
  }
}

}  // namespace sluice::pipeline
