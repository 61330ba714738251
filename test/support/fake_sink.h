#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "dataplane/core/sink.h"

namespace sluice::test {

/// A sink that remembers what it was given and does as it is told.
class FakeSink final : public core::TableSink {
 public:
  explicit FakeSink(std::string name = "fake") : name_(std::move(name)) {}

  [[nodiscard]] core::Capabilities capabilities() const override { return {name_, {}, {}}; }

  core::Result<core::ApplyReport> apply(const core::TablePtr& table) override {
    std::unique_lock lock(mutex_);
    ++attempts_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return !held_; });
    if (behaviour_) {
      if (auto wrong = behaviour_(attempts_); !wrong.empty()) {
        return tl::unexpected(core::Error{wrong});
      }
    }
    tables_.push_back(table);
    changed_.notify_all();
    return core::ApplyReport{table->generation(), {}};
  }
  core::Result<void> cleanup() override { return {}; }

  /// Called with the number of the attempt (from 1): "" succeeds, text fails, may throw.
  void behave(std::function<std::string(int)> behaviour) {
    const std::lock_guard lock(mutex_);
    behaviour_ = std::move(behaviour);
  }
  /// Makes every apply wait until release().
  void hold() {
    const std::lock_guard lock(mutex_);
    held_ = true;
  }
  void release() {
    {
      const std::lock_guard lock(mutex_);
      held_ = false;
    }
    changed_.notify_all();
  }
  /// Waits until apply() was called so often. @return false: not within 10 s.
  bool wait_attempts(int count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10), [&] { return attempts_ >= count; });
  }
  [[nodiscard]] int attempts() const {
    const std::lock_guard lock(mutex_);
    return attempts_;
  }
  [[nodiscard]] std::vector<core::TablePtr> tables() const {
    const std::lock_guard lock(mutex_);
    return tables_;
  }
  [[nodiscard]] core::TablePtr last() const {
    const std::lock_guard lock(mutex_);
    return tables_.empty() ? nullptr : tables_.back();
  }

 private:
  std::string name_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::function<std::string(int)> behaviour_;
  bool held_ = false;
  int attempts_ = 0;
  std::vector<core::TablePtr> tables_;
};

}  // namespace sluice::test
