#include "control/publish/assembly_line.h"

#include <algorithm>

#include "control/publish/all_cores.h"

namespace sluice::publish {
namespace {

constexpr std::size_t kThreads = 4;  // no more than so many are of use

}  // namespace

void AssemblyLine::run(const core::ParallelFor& parallel) {
  parallel(std::min(batches_, kThreads), [this](std::size_t) { work(); });
}

/// Until all is done, by whomever. A thread alone always finds a batch that can go on: the oldest.
void AssemblyLine::work() {
  Lock lock(mutex_);
  while (first_ < batches_ && !failed_) {
    if (const std::size_t batch = next(); batch < batches_) {
      step(batch, lock);
    } else {
      moved_.wait(lock);
    }
  }
}

std::size_t AssemblyLine::next() const {
  const std::size_t end = std::min(batches_, first_ + core::kBatchWindow);
  for (std::size_t batch = first_; batch < end; ++batch) {
    const Progress& mine = of(batch);
    if (mine.under_way || mine.station == stations_.size()) {
      continue;
    }
    const bool turn = batch == first_ || of(batch - 1).station > mine.station;
    if (!stations_[mine.station].in_order || (turn && !order_taken_)) {
      return batch;
    }
  }
  return batches_;
}

void AssemblyLine::step(std::size_t batch, Lock& lock) {
  Progress& mine = of(batch);
  const core::Station& station = stations_[mine.station];
  mine.under_way = true;
  order_taken_ = order_taken_ || station.in_order;
  lock.unlock();
  try {
    station.work(batch);
  } catch (...) {
    lock.lock();
    failed_ = true;
    moved_.notify_all();
    throw;
  }
  lock.lock();
  mine.under_way = false;
  ++mine.station;
  order_taken_ = order_taken_ && !station.in_order;
  while (first_ < batches_ && of(first_).station == stations_.size()) {
    of(first_) = {};  // its place is free for a later one
    ++first_;
  }
  moved_.notify_all();
}

void on_a_line(std::size_t n, const std::vector<core::Station>& stations) {
  AssemblyLine(n, stations).run(on_all_cores);
}

}  // namespace sluice::publish
