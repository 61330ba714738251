#include "control/publish/all_cores.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "dataplane/core/fwd/parallel.h"

namespace sluice::publish {
namespace {

constexpr std::size_t kMostThreads = 4;
// Pieces a thread takes at a time: the last ones of two threads end at about the same time.
constexpr std::size_t kPiecesPerThread = 16;

/// Those the caller may run on, and so the threads it starts.
std::size_t own_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof cores, &cores) == 0) {
    return static_cast<std::size_t>(CPU_COUNT(&cores));
  }
  return std::thread::hardware_concurrency();  // the machine has more than a cpu_set_t can name
}

std::size_t threads_for(std::size_t n) {
  return std::min({n, kMostThreads, own_cores()});
}

/// Hands out [0, n) in pieces.
class Share {
 public:
  Share(std::size_t n, std::size_t threads, const std::function<void(std::size_t)>& body)
      : n_(n), piece_(std::max<std::size_t>(1, n / (threads * kPiecesPerThread))), body_(body) {}

  void work() noexcept {
    try {
      for (auto from = next_.fetch_add(piece_); from < n_; from = next_.fetch_add(piece_)) {
        for (auto i = from; i < std::min(n_, from + piece_); ++i) {
          body_(i);
        }
      }
    } catch (...) {
      next_.store(n_);  // the others need not go on
      const std::lock_guard lock(mutex_);
      failed_ = std::current_exception();
    }
  }
  /// After all have ended.
  void rethrow() const {
    if (failed_ != nullptr) {
      std::rethrow_exception(failed_);
    }
  }

 private:
  const std::size_t n_;
  const std::size_t piece_;
  const std::function<void(std::size_t)>& body_;
  std::atomic<std::size_t> next_{0};
  std::mutex mutex_;
  std::exception_ptr failed_;
};

}  // namespace

void on_all_cores(std::size_t n, const std::function<void(std::size_t)>& body) {
  if (n < 2) {
    core::one_after_another(n, body);  // without a question to the kernel
    return;
  }
  const std::size_t threads = threads_for(n);
  Share share(n, std::max<std::size_t>(1, threads), body);
  {
    std::vector<std::jthread> others;
    try {
      for (std::size_t i = 1; i < threads; ++i) {
        others.emplace_back([&share] { share.work(); });
      }
    } catch (const std::system_error&) {
      // No more threads to be had: those there are do all of it.
    }
    share.work();
  }
  share.rethrow();
}

}  // namespace sluice::publish
