#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <utility>

namespace sluice::publish {

/// Work for one thread, in order. Who waits for an answer is woken in any case: closing the queue
/// drops what is left of it, and with it the promises. Thread: wait_until() and take() the
/// worker's; the rest any.
class CommandQueue {
 public:
  using Clock = std::chrono::steady_clock;
  using Work = std::function<void()>;

  /// The worker's thread runs: what somebody waits for is taken from now on.
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
  }
  /// Takes no more work and wakes the worker.
  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    wake_.notify_all();
  }
  /// Forgets what was not taken.
  void drop() { take(); }

  /// @param waits  the caller waits for it: taken only while the worker runs.
  /// @return false: not taken.
  bool post(Work work, bool waits = false) {
    {
      const std::lock_guard lock(mutex_);
      if (closed_ || (waits && !open_)) {
        return false;
      }
      work_.push_back(std::move(work));
    }
    wake_.notify_all();
    return true;
  }

  /// What `make` answers in the worker's thread; `otherwise` when the queue is closed before, or
  /// the work dropped. An exception of `make` is the caller's.
  template <class Value, class Make>
  Value ask(Make make, Value otherwise) {
    auto promise = std::make_shared<std::promise<Value>>();
    auto future = promise->get_future();
    // The work alone keeps the promise: it must break when the work is dropped.
    auto work = [promise = std::move(promise), make = std::move(make)] {
      try {
        promise->set_value(make());
      } catch (...) {
        promise->set_exception(std::current_exception());
      }
    };
    return post(std::move(work), true) ? wait(future, std::move(otherwise)) : otherwise;
  }

  /// The value, or `otherwise` when its promise was dropped.
  template <class Value>
  static Value wait(std::future<Value>& future, Value otherwise) {
    try {
      return future.get();
    } catch (const std::future_error&) {
      return otherwise;
    }
  }

  /// Waits for work. @return false: closed.
  bool wait_until(Clock::time_point until) {
    std::unique_lock lock(mutex_);
    wake_.wait_until(lock, until, [&] { return closed_ || !work_.empty(); });
    return !closed_;
  }
  /// Everything there is.
  std::deque<Work> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(work_, {});
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Work> work_;
  bool open_ = false;
  bool closed_ = false;
};

}  // namespace sluice::publish
