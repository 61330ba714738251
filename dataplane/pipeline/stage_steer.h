#pragma once

// Stage: packets of flows that are known to live elsewhere (steering_cache.h), when there are many.
// Included by worker.h.
//
//   receiver --kKnown--> worker that is remembered: serves it if it has the connection
//            <-kReturned-- it has not: a full procedure at the receiver, as without a memory
//            --kOwner--> the owner
//
// Such a packet meets neither the receiver's tables nor the owner procedure. It skips only what the
// receiver would have found out: its connection is not here. So a wrong memory costs two crossings
// and changes nothing but the order of the flow's packets, once: those behind the one that comes
// back overtake it. Flows of no connection (answers of direct ones, dr past a full table) would go
// that way for ever, so who came back is not asked about again (SteeringCache::ignore()) until a
// SYN goes out or the flow is opened here.
//
// A SYN asks nobody and leaves no answer: it opens a flow, or ends one that stood in its way, and
// a flood of them must not drive out what is known of others (floods of other packets do). Within a
// burst all packets of a flow but its SYN get one answer, and rings keep their order; so do flows.

#include "dataplane/pipeline/worker.h"

namespace sluice::pipeline {

/// The rings that got messages their workers cannot see yet. Packets often go to one worker in a
/// row, whose ring is found once.
class OpenRings {
 public:
  OpenRings(HandoverRings& rings, std::size_t own) noexcept : rings_(rings), own_(own) {}
  ~OpenRings() { publish(); }
  OpenRings(const OpenRings&) = delete;
  OpenRings& operator=(const OpenRings&) = delete;

  [[nodiscard, gnu::always_inline]] HandoverRing& to(std::size_t worker) noexcept {
    if (worker != last_) {
      last_ = worker;
      ring_ = &rings_.ring(own_, worker);
      open_[worker / 64] |= std::uint64_t{1} << worker % 64;
    }
    return *ring_;
  }

 private:
  void publish() noexcept {
    for (std::size_t w = 0; w < open_.size(); ++w) {
      for (std::uint64_t left = open_[w]; left != 0; left &= left - 1) {
        rings_.ring(own_, w * 64 + static_cast<std::size_t>(std::countr_zero(left))).publish();
      }
    }
  }

  HandoverRings& rings_;
  std::size_t own_;
  std::size_t last_ = kMaxWorkers;
  HandoverRing* ring_ = nullptr;
  std::array<std::uint64_t, kMaxWorkers / 64> open_{};
};

/// As the loop over parse_and_sort(), in two passes: a flow's place in the memory comes meanwhile.
template <PacketIo Io, class I4, class I6, WorkerClock C>
[[gnu::noinline]] void Worker<Io, I4, I6, C>::parse_and_steer() noexcept {
  BatchSizes sizes = batch_.sizes();
  std::array<std::uint8_t, kBurst> flows;
  std::uint32_t n = 0;
  bool let_in = false;
  // Copies of what no packet changes: they would be read again after every write to a message.
  const SteeringCache memory = steering_;
  const std::uint32_t size = batch_.size;
  const bool at_door = batch_.at_door;
  for (std::uint32_t i = 0; i < size; ++i) {
    if (!parse(i)) [[unlikely]] {
      batch_.others[sizes.others++] = static_cast<std::uint8_t>(i);
      continue;
    }
    if (at_door && ends_at_door(i, let_in)) {  // stage_flood.h
      continue;
    }
    const core::ParsedFrame& f = batch_.parsed[i];
    const std::uint32_t hash =
        f.kind == core::FrameKind::kFlow4 ? conns4_.hash(f.key4) : conns6_.hash(f.key6);
    batch_.hashes[i] = hash;
    memory.prefetch(hash);
    flows[n++] = static_cast<std::uint8_t>(i);
  }
  steer(memory, std::span(flows).first(n), sizes);
  batch_.set_sizes(sizes);
}

/// Sends on those of `flows` that are known to live elsewhere, and sorts the others.
template <PacketIo Io, class I4, class I6, WorkerClock C>
[[gnu::always_inline]] inline void Worker<Io, I4, I6, C>::steer(
    const SteeringCache& memory, std::span<const std::uint8_t> flows,
    BatchSizes& sizes) noexcept {
  OpenRings rings(links_.rings, config_.index);
  const auto own = static_cast<std::uint16_t>(config_.index);
  const bool fed_by_kernel = partial_csum_ != 0;
  std::uint32_t known = 0;
  std::uint32_t lost = 0;
  for (const std::uint32_t i : flows) {
    const std::uint32_t hash = batch_.hashes[i];
    const std::uint32_t worker = known_worker(memory, i, hash);
    if (worker == SteeringCache::kNone) {
      sort_parsed(i, hash, sizes);
      continue;
    }
    ++known;
    if (fed_by_kernel) [[unlikely]] {
      complete_checksum(i);  // its port is not fed by a kernel for whoever gets it
    }
    HandoverMessage* const message = rings.to(worker).claim();
    if (message == nullptr) [[unlikely]] {
      drop(batch_.packets[i], Counter::kHandoverRingFull);
      ++lost;
      continue;
    }
    message->put(batch_.packets[i]);
    message->stage = Stage::kKnown;
    message->put(batch_.parsed[i], hash);
    message->from = own;
  }
  counters_.add(Counter::kSteeringMisses, known);
  counters_.add(Counter::kSteeringKnown, known);
  counters_.add(Counter::kHandoverSent, known - lost);
}

template <PacketIo Io, class I4, class I6, WorkerClock C>
[[gnu::always_inline]] inline std::uint32_t Worker<Io, I4, I6, C>::known_worker(
    const SteeringCache& memory, std::uint32_t i, std::uint32_t hash) const noexcept {
  const bool opens = core::is_opening(batch_.parsed[i].tcp_flags);
  return opens ? SteeringCache::kNone : memory.find(hash);
}

/// A packet that was sent by what was remembered, and is back.
template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::see_returned(std::uint32_t hash) noexcept {
  steering_.ignore(hash);
  counters_.add(Counter::kSteeringReturned);
}

}  // namespace sluice::pipeline
