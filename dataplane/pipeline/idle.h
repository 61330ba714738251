#pragma once

#include <cstdint>

namespace sluice::pipeline {

/// What a worker does when a poll brought nothing (design section 5, "Idle").
enum class IdleStrategy : std::uint8_t { kAuto, kSpin, kYield, kSleep };

enum class IdleAction : std::uint8_t {
  kNone,   ///< poll again at once
  kPause,  ///< one pause instruction
  kYield,  ///< sched_yield
  kSleep,  ///< Idle::kSleepMicros
};

/// Pure state machine: told whether the last poll did anything, says what to do now. The thread
/// loop does it. `auto`: 64 polls with pause, 512 with yield, then sleeps until a packet comes
/// (measured beside wrk and nginx on two cores, design section 5).
class Idle {
 public:
  static constexpr std::uint32_t kPauses = 64;
  static constexpr std::uint32_t kYields = 512;
  static constexpr std::uint32_t kSleepMicros = 50;

  explicit Idle(IdleStrategy strategy = IdleStrategy::kAuto) noexcept : strategy_(strategy) {}

  [[nodiscard]] IdleAction after_poll(bool busy) noexcept {
    if (busy) {
      empty_ = 0;
      return IdleAction::kNone;
    }
    switch (strategy_) {
      case IdleStrategy::kSpin:
        return IdleAction::kPause;
      case IdleStrategy::kYield:
        return IdleAction::kYield;
      case IdleStrategy::kSleep:
        return IdleAction::kSleep;
      case IdleStrategy::kAuto:
        break;
    }
    if (empty_ < kPauses + kYields) {
      ++empty_;
      return empty_ <= kPauses ? IdleAction::kPause : IdleAction::kYield;
    }
    return IdleAction::kSleep;
  }

 private:
  IdleStrategy strategy_;
  std::uint32_t empty_ = 0;
};

}  // namespace sluice::pipeline
