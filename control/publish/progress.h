#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>

namespace sluice::publish {

/// Wakes those who wait until something of the publisher has come far enough. Thread: any.
class Progress {
 public:
  void notify() {
    {
      const std::lock_guard lock(mutex_);  // a waiter is either before its look or asleep
    }
    moved_.notify_all();
  }

  /// @param give_up  asked every 50 ms; may be empty. @param done  asked after every notify().
  /// @return whether `done` came true in time.
  template <class Done>
  bool wait(std::chrono::milliseconds timeout, const std::function<bool()>& give_up, Done done) {
    using Clock = std::chrono::steady_clock;
    constexpr std::chrono::milliseconds kLook{50};
    const auto until = Clock::now() + timeout;
    std::unique_lock lock(mutex_);
    while (!done()) {
      const auto now = Clock::now();
      if (now >= until || (give_up && give_up())) {
        return false;
      }
      moved_.wait_until(lock, std::min<Clock::time_point>(until, now + kLook));
    }
    return true;
  }

 private:
  std::mutex mutex_;
  std::condition_variable moved_;
};

}  // namespace sluice::publish
