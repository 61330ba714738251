#include "control/publish/command_queue.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace sluice::publish {
namespace {

constexpr std::chrono::seconds kLong{10};  // a bound for a wait that ends at once

/// A queue and a thread that asks it.
class CommandQueueTest : public testing::Test {
 protected:
  ~CommandQueueTest() override {
    queue_.close();
    queue_.drop();
    if (asks_.joinable()) {
      asks_.join();
    }
  }
  template <class Make>
  void ask(Make make) {
    queue_.open();
    asks_ = std::thread([this, make] {
      try {
        answer_ = queue_.ask<int>(make, -1);
      } catch (const std::string& error) {
        error_ = error;
      }
    });
    ASSERT_TRUE(queue_.wait_until(CommandQueue::Clock::now() + kLong));
  }
  void work() {
    for (auto& work : queue_.take()) {
      work();
    }
    asks_.join();
  }

  CommandQueue queue_;
  std::thread asks_;
  int answer_ = 0;
  std::string error_;
};

TEST_F(CommandQueueTest, AnswersWithWhatTheWorkMakes) {
  ask([] { return 42; });
  work();
  EXPECT_EQ(answer_, 42);
}

TEST_F(CommandQueueTest, AnExceptionOfTheWorkIsWhoAsksOne) {
  ask([]() -> int { throw std::string("no"); });
  work();
  EXPECT_EQ(error_, "no");
}

TEST_F(CommandQueueTest, WhatSomebodyWaitsForIsTakenOnlyWhileItIsOpen) {
  EXPECT_EQ(queue_.ask<int>([] { return 42; }, -1), -1);
  queue_.open();
  queue_.close();
  EXPECT_EQ(queue_.ask<int>([] { return 42; }, -1), -1);
}

// Who asked kept the promise alive and waited for ever.
TEST_F(CommandQueueTest, WhoWaitsIsAnsweredWhenTheWorkIsDropped) {
  ask([] { return 42; });
  queue_.close();
  queue_.drop();
  asks_.join();
  EXPECT_EQ(answer_, -1);
}

}  // namespace
}  // namespace sluice::publish
