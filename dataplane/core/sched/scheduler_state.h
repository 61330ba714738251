#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/core/fwd/forwarding_table.h"

namespace sluice::core {

/// What the schedulers of one worker remember. All memory is taken at construction.
/// Thread: the owner worker only.
class SchedulerState {
 public:
  /// @param service_slots upper bound of slots (configuration: service ports)
  /// @param worker        number of this worker, 0..workers-1
  /// @param seed          any value; the worker number is mixed in
  SchedulerState(std::uint32_t service_slots, std::uint32_t worker, std::uint32_t workers,
                 std::uint64_t seed)
      : cursors_(service_slots == 0 ? 1 : service_slots, 0), worker_(worker), workers_(workers == 0 ? 1 : workers) {
    random_ = seed + 0x9e3779b97f4a7c15ULL * (std::uint64_t{worker} + 1);
    (void)next_random();
  }

  /// A uniform 64-bit number. Source: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014); its period 2^64
  /// and statistics are enough to spread flows, and it is one multiply chain of two.
  std::uint64_t next_random() noexcept {
    random_ += 0x9e3779b97f4a7c15ULL;
    std::uint64_t z = random_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }

  /// A uniform number in [0, n), n > 0. Source: Lemire, "Fast random integer generation in an
  /// interval" (2019), without the rejection step: its bias is below n / 2^64.
  std::uint32_t next_below(std::uint32_t n) noexcept {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint32_t>((static_cast<Wide>(next_random()) * n) >> 64);
  }

  /// Counts the picks made for a slot; slots beyond the configured bound share the last cell.
  std::uint32_t& cursor(ServiceSlot slot) noexcept {
    const auto i = static_cast<std::uint32_t>(slot);
    return cursors_[i < cursors_.size() ? i : cursors_.size() - 1];
  }

  [[nodiscard]] std::uint32_t worker() const noexcept { return worker_; }
  [[nodiscard]] std::uint32_t workers() const noexcept { return workers_; }

 private:
  std::vector<std::uint32_t> cursors_;
  std::uint64_t random_ = 0;
  std::uint32_t worker_ = 0;
  std::uint32_t workers_ = 1;
};

}  // namespace sluice::core
