#include "control/publish/sink_runner.h"

namespace sluice::publish {

SinkRunner::SinkRunner(core::TableSink& sink, const RateLimiter::Options& pace,
                       std::function<void()> on_progress)
    : sink_(sink), on_progress_(std::move(on_progress)), limiter_(pace) {
  status_.name = sink.capabilities().name;
}

SinkRunner::~SinkRunner() {
  stop();
}

void SinkRunner::start() {
  thread_ = std::thread([this] { run(); });
}

void SinkRunner::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void SinkRunner::want(Edition edition) {
  {
    const std::lock_guard lock(mutex_);
    status_.wanted_version = edition.version;
    status_.wanted_generation = edition.table->generation();
    if (edition.table == applied_.table && status_.last_error.empty()) {
      status_.applied_version = edition.version;  // the change meant nothing to this node
      applied_ = edition;
    } else {
      limiter_.request();
      status_.last_queued = std::chrono::system_clock::now();
    }
    wanted_ = std::move(edition);
  }
  wake_.notify_all();
}

SinkStatus SinkRunner::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

Edition SinkRunner::applied() const {
  const std::lock_guard lock(mutex_);
  return applied_;
}

void SinkRunner::run() {
  try {
    run_until_stopped();
    return;
  } catch (...) {
    // Not a std::exception: the sink is in a state nobody knows. The thread ends; health says so.
    const std::lock_guard lock(mutex_);
    status_.alive = false;
    status_.last_error = "the sink's thread ended by an unknown exception";
    ++status_.failures;
  }
  on_progress_();
}

void SinkRunner::run_until_stopped() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const auto next = wanted_.table == nullptr ? std::nullopt : limiter_.next_run();
    if (!next) {
      wake_.wait(lock);
    } else if (*next > RateLimiter::Clock::now()) {
      wake_.wait_until(lock, *next);
    } else {
      apply_once(lock);
    }
  }
}

void SinkRunner::apply_once(std::unique_lock<std::mutex>& lock) {
  const Edition edition = wanted_;
  limiter_.started();
  lock.unlock();
  core::Result<core::ApplyReport> result;
  try {
    result = sink_.apply(edition.table);
  } catch (const std::exception& error) {
    result = tl::unexpected(core::Error{error.what()});
  }
  lock.lock();
  if (result) {
    limiter_.succeeded(RateLimiter::Clock::now());
    // While the apply ran, the same table may have come to stand for a later version.
    applied_ = wanted_.table == edition.table ? wanted_ : edition;
    status_.applied_version = applied_.version;
    status_.applied_generation = applied_.table->generation();
    ++status_.applies;
    status_.last_success = std::chrono::system_clock::now();
    status_.last_error.clear();
    status_.unsupported = std::move(result->unsupported);
  } else {
    limiter_.failed(RateLimiter::Clock::now());
    ++status_.failures;
    status_.last_error = result.error().message;
  }
  lock.unlock();
  on_progress_();
  lock.lock();
}

}  // namespace sluice::publish
