#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/core/fwd/forwarding_table.h"
#include "dataplane/core/sched/load.h"
#include "dataplane/core/sched/locality_cache.h"

namespace sluice::core {

/// Which candidate list of which service port.
struct ListRef {
  ServiceSlot slot = ServiceSlot::kNone;
  bool local = false;  ///< the list of policy Local
};

/// Where the turns of one list stand (rr, wrr).
struct Cursor {
  static constexpr std::uint32_t kFresh = 0xffffffff;
  std::uint32_t place = kFresh;  ///< next one to look at
  std::uint32_t level = 0;       ///< wrr: weight that is enough in this pass
};

/// What the schedulers of one worker remember. All memory is taken at construction.
/// Thread: the owner worker only.
class SchedulerState {
 public:
  /// @param service_slots upper bound of slots (configuration: service ports)
  /// @param worker        number of this worker, 0..workers-1
  /// @param seed          any value; the worker number is mixed in
  /// @param loads         what this worker sees of connection counts
  SchedulerState(std::uint32_t service_slots, std::uint32_t worker, std::uint32_t workers,
                 std::uint64_t seed, LoadView loads = {})
      : cursors_(std::size_t{service_slots == 0 ? 1 : service_slots} * 2),
        loads_(loads),
        locality_(seed) {
    workers = workers == 0 ? 1 : workers;
    share_ = (std::uint64_t{worker} << 32) / workers;
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

  /// Where worker w of W begins among n: w/W of the way, so that workers do not all begin with the
  /// first (F35). Below n.
  [[nodiscard]] std::uint32_t start(std::size_t n) const noexcept {
    return static_cast<std::uint32_t>(share_ * n >> 32);
  }

  /// Slots beyond the configured bound share the last cells.
  Cursor& cursor(ListRef list) noexcept {
    const std::size_t last = cursors_.size() / 2 - 1;
    const auto i = static_cast<std::size_t>(list.slot);
    return cursors_[(i < last ? i : last) * 2 + (list.local ? 1 : 0)];
  }

  [[nodiscard]] const LoadView& loads() const noexcept { return loads_; }
  LocalityCache& locality() noexcept { return locality_; }

 private:
  std::vector<Cursor> cursors_;
  LoadView loads_;
  LocalityCache locality_;
  std::uint64_t random_ = 0;
  std::uint64_t share_ = 0;  ///< worker / workers, times 2^32
};

}  // namespace sluice::core
