#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace sluice::core {

/// Calls body(0) .. body(n - 1), in any order and on any threads, and returns when all have ended.
/// Throws what one of them threw. Core, model and compile start no threads: who owns them says how.
using ParallelFor =
    std::function<void(std::size_t n, const std::function<void(std::size_t)>& body)>;

/// On the caller's thread, in order.
inline void one_after_another(std::size_t n, const std::function<void(std::size_t)>& body) {
  for (std::size_t i = 0; i < n; ++i) {
    body(i);
  }
}

/// Where batches of work come by.
struct Station {
  std::function<void(std::size_t batch)> work;
  bool in_order = false;  ///< one batch at a time at all of these stations together, 0 first
};
/// Batches that are under way at once, at most: batch b may use again what b - kBatchWindow used.
inline constexpr std::size_t kBatchWindow = 16;

/// Takes batches 0 .. n-1 through the stations, each through one after the other, on any threads,
/// and returns when all are through. Throws what a station threw; then nothing more is begun.
using BatchLine = std::function<void(std::size_t n, const std::vector<Station>& stations)>;

/// On the caller's thread.
inline void batch_after_batch(std::size_t n, const std::vector<Station>& stations) {
  for (std::size_t batch = 0; batch < n; ++batch) {
    for (const Station& station : stations) {
      station.work(batch);
    }
  }
}

}  // namespace sluice::core
