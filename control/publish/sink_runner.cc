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

void SinkRunner::want(core::TablePtr table, std::uint64_t version) {
  {
    const std::lock_guard lock(mutex_);
    status_.wanted_version = version;
    status_.wanted_generation = table->generation();
    if (table == applied_ && status_.last_error.empty()) {
      status_.applied_version = version;  // the change meant nothing to this node
    } else {
      limiter_.request();
    }
    wanted_ = std::move(table);
  }
  wake_.notify_all();
}

SinkStatus SinkRunner::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
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
    const auto next = wanted_ == nullptr ? std::nullopt : limiter_.next_run();
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
  const auto table = wanted_;
  const auto version = status_.wanted_version;
  limiter_.started();
  lock.unlock();
  core::Result<core::ApplyReport> result;
  try {
    result = sink_.apply(table);
  } catch (const std::exception& error) {
    result = tl::unexpected(core::Error{error.what()});
  }
  lock.lock();
  if (result) {
    limiter_.succeeded(RateLimiter::Clock::now());
    applied_ = table;
    // While the apply ran, the same table may have come to stand for a later version.
    status_.applied_version = wanted_ == table ? status_.wanted_version : version;
    status_.applied_generation = table->generation();
    ++status_.applies;
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
