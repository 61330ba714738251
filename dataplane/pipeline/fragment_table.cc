#include "dataplane/pipeline/fragment_table.h"

#include <cstring>

namespace sluice::pipeline {
namespace {

std::size_t set_of(const core::FragmentInfo& piece) noexcept {
  std::uint64_t h = piece.id;
  for (const core::IpAddress* address : {&piece.src, &piece.dst}) {
    std::uint64_t halves[2];
    std::memcpy(halves, address->data(), 16);
    h = (h ^ halves[0] ^ (halves[1] >> 7)) * 0x9e3779b97f4a7c15ULL;
    h ^= h >> 29;
  }
  return (h >> 20) % FragmentTable::kSets;
}

bool same(const core::FragmentInfo& a, const core::FragmentInfo& b) noexcept {
  return a.id == b.id && a.protocol == b.protocol && a.src == b.src && a.dst == b.dst;
}

}  // namespace

FragmentTable::Datagram* FragmentTable::find_or_add(const core::FragmentInfo& piece,
                                                    core::Tick now) noexcept {
  Datagram* set = &datagrams_[set_of(piece) * kWays];
  Datagram* found = nullptr;
  Datagram* spare = nullptr;  // free, or the oldest that holds nothing
  for (std::size_t way = 0; way < kWays && found == nullptr; ++way) {
    Datagram& d = set[way];
    if (d.state != State::kFree && same(d.identity, piece)) {
      found = &d;
    } else if (d.state == State::kFree) {
      spare = spare == nullptr || spare->state != State::kFree ? &d : spare;
    } else if (d.first_held == kNone &&
               (spare == nullptr ||
                (spare->state != State::kFree && now - d.since > now - spare->since))) {
      spare = &d;
    }
  }
  if (found == nullptr && spare != nullptr) {
    used_ += spare->state == State::kFree ? 1 : 0;
    *spare = Datagram{};
    spare->identity = piece;
    spare->state = State::kWaiting;
    spare->since = now;
    found = spare;
  }
  if (found != nullptr) {
    const std::uint32_t end = std::uint32_t{piece.offset} + piece.length;
    found->seen.note(piece.offset, end);
    found->total = piece.more ? found->total : end;
  }
  return found;
}

bool FragmentTable::hold(Datagram& datagram, const Packet& packet) noexcept {
  if (free_piece_ == kNone || held_bytes_ + packet.total > kHeldBytes) {
    return false;
  }
  const std::uint16_t at = free_piece_;
  free_piece_ = pieces_[at].next;
  pieces_[at] = {packet, kNone};
  if (datagram.last_held == kNone) {
    datagram.first_held = at;
  } else {
    pieces_[datagram.last_held].next = at;
  }
  datagram.last_held = at;
  ++held_;
  held_bytes_ += packet.total;
  return true;
}

bool FragmentTable::take_held(Datagram& datagram, Packet& packet) noexcept {
  const std::uint16_t at = datagram.first_held;
  if (at == kNone) {
    return false;
  }
  packet = pieces_[at].packet;
  datagram.first_held = pieces_[at].next;
  if (datagram.first_held == kNone) {
    datagram.last_held = kNone;
  }
  pieces_[at].next = free_piece_;
  free_piece_ = at;
  --held_;
  held_bytes_ -= packet.total;
  return true;
}

}  // namespace sluice::pipeline
