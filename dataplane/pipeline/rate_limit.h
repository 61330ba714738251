#pragma once

#include <cstdint>

#include "dataplane/core/conn/entry.h"

namespace sluice::pipeline {

/// Token bucket on ticks, for the errors and resets a worker makes. Thread: the owner worker.
class RateLimit {
 public:
  /// @param per_tick  tokens that come back in a tick (1.05 ms).
  /// @param burst     most tokens there can be.
  constexpr RateLimit(std::uint32_t per_tick, std::uint32_t burst) noexcept
      : per_tick_(per_tick), burst_(burst), tokens_(burst) {}

  [[nodiscard]] bool take(core::Tick now) noexcept {
    const core::Tick passed = now - filled_at_;
    if (passed != 0) {
      filled_at_ = now;
      const std::uint64_t more = std::uint64_t{passed} * per_tick_ + tokens_;
      tokens_ = more < burst_ ? static_cast<std::uint32_t>(more) : burst_;
    }
    if (tokens_ == 0) {
      return false;
    }
    --tokens_;
    return true;
  }

 private:
  std::uint32_t per_tick_;
  std::uint32_t burst_;
  std::uint32_t tokens_;
  core::Tick filled_at_ = 0;
};

}  // namespace sluice::pipeline
