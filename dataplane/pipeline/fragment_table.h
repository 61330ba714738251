#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "dataplane/core/conn/entry.h"
#include "dataplane/core/net/parse.h"
#include "dataplane/pipeline/handover.h"

namespace sluice::pipeline {

/// Which bytes of a datagram have been seen: ranges that neither touch nor overlap, so a piece that
/// comes twice counts once. A piece that would need one range more than there is room for is not
/// noted: its datagram then never becomes whole and ends by time.
class Coverage {
 public:
  void note(std::uint32_t begin, std::uint32_t end) noexcept {
    for (std::size_t i = 0; i < size_;) {
      if (ranges_[i].begin <= end && begin <= ranges_[i].end) {
        begin = std::min(begin, ranges_[i].begin);
        end = std::max(end, ranges_[i].end);
        ranges_[i] = ranges_[--size_];
      } else {
        ++i;
      }
    }
    if (size_ < kRanges) {
      ranges_[size_++] = {begin, end};
    }
  }
  /// All of the bytes before `end`.
  [[nodiscard]] bool whole(std::uint32_t end) const noexcept {
    return size_ == 1 && ranges_[0].begin == 0 && ranges_[0].end >= end;
  }

 private:
  static constexpr std::size_t kRanges = 16;
  struct Range {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
  };
  std::array<Range, kRanges> ranges_{};
  std::size_t size_ = 0;
};

/// Datagrams in pieces, at the worker where their pieces meet. Only the first piece has ports; the
/// others wait for it, at most a second, and then go the same way. Pieces are never joined: each is
/// translated by itself.
///
/// Bounded: kDatagrams at a time (sets of kWays by hash), kHeld pieces and kHeldBytes in all. A
/// datagram is forgotten when all its bytes have been seen, or after kPatience.
/// Thread: the owner worker.
class FragmentTable {
 public:
  static constexpr std::size_t kWays = 4;
  static constexpr std::size_t kSets = 128;
  static constexpr std::size_t kDatagrams = kWays * kSets;
  static constexpr std::size_t kHeld = 256;
  static constexpr std::size_t kHeldBytes = 512 * 1024;
  static constexpr core::Tick kPatience = 954;  ///< ticks in a second

  enum class State : std::uint8_t {
    kFree,
    kWaiting,  ///< the first piece has not come
    kPorts,    ///< it has: `ports`
    kForeign,  ///< it has none: nothing of ours
  };
  struct Datagram {
    core::FragmentInfo identity;  ///< src, dst, id, protocol
    FragmentPorts ports;
    State state = State::kFree;
    core::Tick since = 0;
    Coverage seen;
    std::uint32_t total = 0;  ///< 0: not known yet
    std::uint16_t first_held = kNone;
    std::uint16_t last_held = kNone;
  };

  FragmentTable() noexcept {
    for (std::size_t i = 0; i < kHeld; ++i) {
      pieces_[i].next = static_cast<std::uint16_t>(i + 1 < kHeld ? i + 1 : kNone);
    }
  }

  /// Finds or starts the datagram of a piece and notes what it covers. One that holds nothing gives
  /// way, the oldest first. @return nullptr: no room.
  [[nodiscard]] Datagram* find_or_add(const core::FragmentInfo& piece, core::Tick now) noexcept;

  /// @return false: too many pieces or bytes wait; the caller keeps the packet.
  [[nodiscard]] bool hold(Datagram& datagram, const Packet& packet) noexcept;
  /// Takes the piece that has waited longest. @return false: none waits.
  bool take_held(Datagram& datagram, Packet& packet) noexcept;

  [[nodiscard]] static bool complete(const Datagram& d) noexcept {
    return d.total != 0 && d.seen.whole(d.total);
  }
  /// Precondition: holds nothing.
  void forget(Datagram& datagram) noexcept {
    datagram.state = State::kFree;
    --used_;
  }

  /// Looks at some of the datagrams; drop(Packet) takes each held piece of one that is too old.
  template <class Drop>
  void expire(core::Tick now, std::size_t look_at, Drop&& drop) noexcept {
    for (std::size_t n = 0; n < look_at && used_ != 0; ++n) {
      Datagram& d = datagrams_[cursor_];
      cursor_ = (cursor_ + 1) % kDatagrams;
      if (d.state != State::kFree && now - d.since >= kPatience) {
        for (Packet packet; take_held(d, packet);) {
          drop(packet);
        }
        forget(d);
      }
    }
  }

  [[nodiscard]] std::size_t used() const noexcept { return used_; }
  [[nodiscard]] std::size_t held() const noexcept { return held_; }

 private:
  static constexpr std::uint16_t kNone = 0xffff;
  struct Piece {
    Packet packet;
    std::uint16_t next = kNone;
  };
  std::array<Datagram, kDatagrams> datagrams_{};
  std::array<Piece, kHeld> pieces_{};
  std::uint16_t free_piece_ = 0;
  std::size_t used_ = 0;
  std::size_t held_ = 0;
  std::size_t held_bytes_ = 0;
  std::size_t cursor_ = 0;
};

}  // namespace sluice::pipeline
