#pragma once

// Stage: what each frame is. Ordinary flows go to the lists of their family, the rest to `others`.
// Included by worker.h.

#include "dataplane/core/net/partial_checksum.h"
#include "dataplane/pipeline/worker.h"

namespace sluice::pipeline {

template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::parse_batch() noexcept {
  if (batch_.ask_steering) [[unlikely]] {
    parse_and_steer();  // stage_steer.h
  } else if (batch_.at_door) [[unlikely]] {
    parse_at_door();  // stage_flood.h
  } else if (batch_.unparsed != 0 && config_.pace.group < kBurst) {
    parse_in_groups();
  } else if (batch_.unparsed != 0) {
    BatchSizes sizes = batch_.sizes();  // nobody's but this loop's: it stays in registers
    const std::uint32_t n = batch_.size;
    const std::uint64_t unparsed = batch_.unparsed;
    for (std::uint32_t i = 0; i < n; ++i) {
      if ((unparsed >> i & 1) != 0) [[likely]] {
        parse_and_sort(i, true, sizes);
      }
    }
    batch_.set_sizes(sizes);
  }
  misses_size_ = 0;
  changed_ = false;
  if (partial_csum_ != 0) {
    complete_checksums();
  }
}

/// As the loop above, but what lookups read first is asked for in loops of their own. Where the
/// address of a page has to be looked up in memory too, a core does that for many at once there,
/// and between two parsed packets for one.
template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::parse_in_groups() noexcept {
  BatchSizes sizes = batch_.sizes();
  const std::uint32_t n = batch_.size;
  const std::uint64_t unparsed = batch_.unparsed;
  for (std::uint32_t i = 0; i < n;) {
    const BatchSizes before = sizes;
    for (const std::uint32_t end = std::min(i + config_.pace.group, n); i < end; ++i) {
      if ((unparsed >> i & 1) != 0) [[likely]] {
        parse_and_sort(i, false, sizes);
      }
    }
    for (std::uint32_t k = before.flows4; k < sizes.flows4; ++k) {
      conns4_.ask_ahead(batch_.hashes4[k]);
    }
    for (std::uint32_t k = before.flows6; k < sizes.flows6; ++k) {
      conns6_.ask_ahead(batch_.hashes6[k]);
    }
  }
  batch_.set_sizes(sizes);
}

/// @return true: a flow, meant for this node.
template <PacketIo Io, class I4, class I6, WorkerClock C>
[[gnu::always_inline]] inline bool Worker<Io, I4, I6, C>::parse(std::uint32_t i) noexcept {
  constexpr std::uint64_t kMacMask = (std::uint64_t{1} << 48) - 1;
  const Packet& p = batch_.packets[i];
  const std::uint8_t* const data = p.data;
  core::ParsedFrame& f = batch_.parsed[i];
  const bool flow = core::parse_frame_inline(data, p.contiguous, p.total, f);
  const std::uint64_t own = fast_port(p.port).own_mac;
  return flow && ((core::load_raw64(data) & kMacMask) == own || p.origin != Origin::kWire);
}

template <PacketIo Io, class I4, class I6, WorkerClock C>
[[gnu::always_inline]] inline void Worker<Io, I4, I6, C>::parse_and_sort(
    std::uint32_t i, bool ask, BatchSizes& sizes) noexcept {
  if (!parse(i)) [[unlikely]] {
    batch_.others[sizes.others++] = static_cast<std::uint8_t>(i);
  } else {
    hash_and_sort(i, ask, sizes);
  }
}

/// A flow that is parsed. @param ask  for what its lookup reads first: it comes while the rest of
/// the burst is parsed.
template <PacketIo Io, class I4, class I6, WorkerClock C>
[[gnu::always_inline]] inline void Worker<Io, I4, I6, C>::hash_and_sort(
    std::uint32_t i, bool ask, BatchSizes& sizes) noexcept {
  const core::ParsedFrame& f = batch_.parsed[i];
  if (f.kind == core::FrameKind::kFlow4) {
    add_flow<core::Ipv4>(i, ask ? conns4_.hash_ahead(f.key4) : conns4_.hash(f.key4), sizes);
  } else {
    add_flow<core::Ipv6>(i, ask ? conns6_.hash_ahead(f.key6) : conns6_.hash(f.key6), sizes);
  }
}

/// A flow that is parsed and hashed.
template <PacketIo Io, class I4, class I6, WorkerClock C>
[[gnu::always_inline]] inline void Worker<Io, I4, I6, C>::sort_parsed(std::uint32_t i,
                                                                      std::uint32_t hash,
                                                                      BatchSizes& sizes) noexcept {
  if (batch_.parsed[i].kind == core::FrameKind::kFlow4) {
    conns4_.ask_ahead(hash);
    add_flow<core::Ipv4>(i, hash, sizes);
  } else {
    conns6_.ask_ahead(hash);
    add_flow<core::Ipv6>(i, hash, sizes);
  }
}

template <PacketIo Io, class I4, class I6, WorkerClock C>
template <class F>
[[gnu::always_inline]] inline void Worker<Io, I4, I6, C>::add_flow(std::uint32_t i,
                                                                   std::uint32_t hash,
                                                                   BatchSizes& sizes) noexcept {
  constexpr bool kIs4 = F::kFamily == core::Family::kIpv4;
  std::uint32_t& n = kIs4 ? sizes.flows4 : sizes.flows6;
  (kIs4 ? batch_.hashes4 : batch_.hashes6)[n] = hash;
  if constexpr (kIs4) {
    batch_.keys4[n] = &key_of<F>(i);
  } else {
    batch_.keys6[n] = &key_of<F>(i);
  }
  (kIs4 ? batch_.flows4 : batch_.flows6)[n++] = static_cast<std::uint8_t>(i);
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
