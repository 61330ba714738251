#pragma once

#include <cstdint>

#include "dataplane/core/conn/states.h"

namespace sluice::pipeline {

/// Whether a worker keeps up, by its receive bursts: only one that does not sees full ones one
/// after the other.
///
///   calm      A full burst or two mean nothing: after 50 us of sleep, or when a kernel feeds the
///             port, frames come in heaps.
///   overload  From `overload_bursts` in a row on, until one is not full: whoever catches up once
///             is not overloaded.
///   flood     From `flood_bursts` in a row on. Who cannot keep up for so long catches up as soon
///             as it opens less, and is behind again as soon as it opens more. So a flood is
///             remembered until nothing was overload for kWary: each full burst until then is one.
///
/// Thread: the worker's.
class LoadWatch {
 public:
  static constexpr core::Tick kWary = core::ticks_of_ms(100);

  /// @param overload_bursts,flood_bursts  at least 1; a flood is an overload, too.
  constexpr LoadWatch(std::uint32_t overload_bursts, std::uint32_t flood_bursts) noexcept
      : overload_bursts_(overload_bursts), flood_bursts_(flood_bursts) {}

  /// Once a poll. @param full  its receive burst was.
  constexpr void see(bool full, core::Tick now) noexcept {
    full_bursts_ = full ? full_bursts_ + 1 : 0;
    overload_ = full_bursts_ >= overload_bursts_;
    if (overload_ && (wary_ || full_bursts_ >= flood_bursts_)) {
      wary_ = true;
      wary_until_ = now + kWary;
    } else if (wary_ && static_cast<std::int32_t>(wary_until_ - now) <= 0) {
      wary_ = false;
    }
    flood_ = wary_ && full;
  }
  /// In this poll; a flood is one as well.
  [[nodiscard]] constexpr bool overload() const noexcept { return overload_ || flood_; }
  [[nodiscard]] constexpr bool flood() const noexcept { return flood_; }

 private:
  std::uint32_t overload_bursts_;
  std::uint32_t flood_bursts_;
  std::uint64_t full_bursts_ = 0;  ///< in a row
  core::Tick wary_until_ = 0;      ///< while wary_
  bool wary_ = false;
  bool overload_ = false;
  bool flood_ = false;
};

}  // namespace sluice::pipeline
