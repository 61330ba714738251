#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <vector>

#include "dataplane/core/fwd/parallel.h"

namespace sluice::publish {

// Theory of operation
//
// Batches of work pass some stations one after the other. At some stations batches must come in
// order and one at a time (`in_order`), at the others it does not matter; so while one thread does
// what must be in order, the others go on with later batches, and a batch is still in the cache
// when it comes to its next station. A thread takes the oldest batch that can go on.

/// Takes batches through stations as core::BatchLine says. Once.
class AssemblyLine {
 public:
  /// @param stations  outlive it.
  AssemblyLine(std::size_t batches, const std::vector<core::Station>& stations)
      : batches_(batches), stations_(stations) {}
  /// One batch is taken through by the caller alone. @param parallel  where threads come from.
  void run(const core::ParallelFor& parallel);

 private:
  using Lock = std::unique_lock<std::mutex>;
  struct Progress {
    std::size_t station = 0;  ///< the next one
    bool under_way = false;   ///< there
  };

  void work();
  void step(std::size_t batch, Lock& lock);
  /// A batch that can go on; batches_ when there is none.
  [[nodiscard]] std::size_t next() const;
  [[nodiscard]] Progress& of(std::size_t batch) { return progress_[batch % core::kBatchWindow]; }
  [[nodiscard]] const Progress& of(std::size_t batch) const {
    return progress_[batch % core::kBatchWindow];
  }

  const std::size_t batches_;
  const std::vector<core::Station>& stations_;
  std::mutex mutex_;  ///< guards what follows
  std::condition_variable moved_;
  std::array<Progress, core::kBatchWindow> progress_;
  std::size_t first_ = 0;       ///< not yet through
  bool order_taken_ = false;    ///< a thread is at a station that is in order
  bool failed_ = false;
};

/// core::BatchLine on the cores the calling thread may use. Thread: any.
void on_a_line(std::size_t n, const std::vector<core::Station>& stations);

}  // namespace sluice::publish
