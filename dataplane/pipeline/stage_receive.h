#pragma once

// Stage: frames into the batch, and what a poll reads once. Included by worker.h.

#include "dataplane/pipeline/worker.h"

namespace sluice::pipeline {

template <PacketIo Io, class I4, class I6, WorkerClock C>
std::size_t Worker<Io, I4, I6, C>::receive() noexcept {
  const std::size_t n = io_.receive(batch_.packets.data(), kBurst);
  batch_.open(n);
  opened_in_poll_ = 0;
  ring_bursts_ = 0;
  host_asked_ = false;
  if (n != 0) {
    counters_.add(Counter::kRxFrames, n);
    counters_.add(Counter::kBurstsFull, n == kBurst ? 1 : 0);
    if (steering_.exists()) {
      elsewhere_.received(n, counters_.read(Counter::kSteeringMisses));
      batch_.ask_steering = elsewhere_.pays();
    }
  }
  return n;
}

/// Fills the batch from the rings to this worker, which are served in turn.
template <PacketIo Io, class I4, class I6, WorkerClock C>
bool Worker<Io, I4, I6, C>::receive_handed_over() noexcept {
  const std::size_t workers = config_.workers;
  if (workers == 1 || ring_bursts_ == kRingBursts) {
    return false;
  }
  ++ring_bursts_;
  batch_.open(0);
  batch_.unparsed = 0;
  BatchSizes sizes;
  for (std::size_t turn = 0; turn < workers && batch_.size < kBurst; ++turn) {
    ring_turn_ = ring_turn_ + 1 < workers ? ring_turn_ + 1 : 0;
    if (ring_turn_ != config_.index) {
      links_.rings.ring(ring_turn_, config_.index)
          .consume(kBurst - batch_.size,
                   [&](const HandoverMessage& m) { take_message(m, sizes); });
    }
  }
  batch_.set_sizes(sizes);
  counters_.add(Counter::kHandoverReceived, batch_.size);
  return batch_.size != 0;
}

/// One more frame of the batch. Its first bytes, which are rewritten, are asked for at once, and
/// what the lookup of a flow reads.
template <PacketIo Io, class I4, class I6, WorkerClock C>
[[gnu::always_inline]] inline void Worker<Io, I4, I6, C>::take_message(
    const HandoverMessage& message, BatchSizes& sizes) noexcept {
  const std::uint32_t i = batch_.size++;
  __builtin_prefetch(message.frame(), 1);
  message.take(batch_.packets[i]);
  batch_.stages[i] = message.stage;
  batch_.from[i] = message.from;
  if (message.content == HandoverContent::kFlow4) {
    message.take4(batch_.parsed[i]);
    conns4_.ask_ahead(message.hash);
    add_flow<core::Ipv4>(i, message.hash, sizes);
  } else if (message.content == HandoverContent::kFlow6) {
    message.take6(batch_.parsed[i]);
    conns6_.ask_ahead(message.hash);
    add_flow<core::Ipv6>(i, message.hash, sizes);
  } else {
    batch_.unparsed |= PacketBatch::bit(i);
    batch_.ports[i] = message.ports();
    const bool has_ports = message.content == HandoverContent::kPorts;
    batch_.has_ports |= has_ports ? PacketBatch::bit(i) : 0;
  }
  if (message.stage >= Stage::kHome) [[unlikely]] {
    batch_.answers[i] = message.answer;
  } else if (message.stage == Stage::kReturned) [[unlikely]] {
    see_returned(message.hash);
  }
}

template <PacketIo Io, class I4, class I6, WorkerClock C>
bool Worker<Io, I4, I6, C>::receive_from_host() noexcept {
  if (host_asked_) {
    return false;
  }
  host_asked_ = true;
  const std::size_t n = io_.receive_from_host(batch_.packets.data(), kBurst);
  batch_.open(n);
  counters_.add(Counter::kRxHostFrames, n);
  return n != 0;
}

template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::open_poll() noexcept {
  open_tables();
  now_ns_ = clock_.now_ns();
  now_ = core::tick_of_ns(now_ns_);
  load_.see(batch_.size == kBurst, now_);
  batch_.at_door = load_.flood();
}

/// Takes the current tables and gives up the older ones. Called after each source of frames: a
/// packet from a ring must not be older than the tables it meets.
template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::open_tables() noexcept {
  tables_ = links_.tables.load(config_.index);
  if (tables_ != nullptr && tables_->sequence != sequence_) [[unlikely]] {
    take_over_tables();
  }
}

template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::take_over_tables() noexcept {
  sequence_ = tables_->sequence;
  epoch_ = tables_->epoch;
  departures_ = tables_->departures.get();
  partial_csum_ = 0;
  for (std::size_t p = 0; p < kMaxPorts; ++p) {
    const PortInfo& info = (*tables_->ports)[p];
    FastPort& fast = fast_[p];
    std::uint64_t mac = 0;
    std::memcpy(&mac, info.mac.bytes.data(), 6);
    fast.own_mac = mac;
    fast.source_mac = mac << 48;
    fast.source_tail = static_cast<std::uint32_t>(mac >> 16);
    fast.max_frame = info.present ? info.mtu + 14u : 0;
    partial_csum_ |= info.present && info.rx_partial_csum ? 1u << p : 0u;
  }
  backend_hops_.clear();
  service_addresses_.clear();
  tunnel_sources4_.take_over(*tables_);
  tunnel_sources6_.take_over(*tables_);
  pins_.see(*tables_->table);
  plan_announcements();
  gauges_.generation.store(tables_->table->generation(), std::memory_order_relaxed);
  counters_.add(Counter::kTablesSeen);
}

/// Before the first table (SY-1) nothing is decided: the host has everything. Which ports a kernel
/// feeds is not known yet either, so whatever looks unfinished is completed.
template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::give_all_to_host() noexcept {
  partial_csum_ = ~std::uint32_t{0};
  batch_.ask_steering = batch_.at_door = false;
  parse_batch();
  for (std::uint32_t i = 0; i < batch_.size; ++i) {
    complete_checksum(i);
    pass(i, Counter::kNoTable);
  }
  batch_.size = 0;
}

template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::flush() noexcept {
  const std::size_t refused = io_.flush();
  if (queued_ != 0) {
    counters_.add(Counter::kTxFrames, queued_ - refused);
    counters_.add(Counter::kTxDropped, refused);
    queued_ = 0;
  }
}

}  // namespace sluice::pipeline
