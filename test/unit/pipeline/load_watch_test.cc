// When a worker says that it does not keep up.

#include "dataplane/pipeline/load_watch.h"

#include <gtest/gtest.h>

namespace sluice::pipeline {
namespace {

constexpr std::uint32_t kOverload = 3, kFlood = 6;  // bursts
constexpr core::Tick kStart = 1000;

class LoadWatchTest : public ::testing::Test {
 protected:
  void see_full(std::uint32_t bursts) {
    for (std::uint32_t n = 0; n < bursts; ++n) {
      watch_.see(true, now_);
    }
  }
  void see_slack() { watch_.see(false, now_); }

  core::Tick now_ = kStart;
  LoadWatch watch_{kOverload, kFlood};
};

TEST_F(LoadWatchTest, IsCalmBeforeItHasSeenAnything) {
  EXPECT_FALSE(watch_.overload());
  EXPECT_FALSE(watch_.flood());
}

TEST_F(LoadWatchTest, IsCalmWhileFullBurstsAreFewerInARowThanAnOverload) {
  for (int heap = 0; heap < 4; ++heap) {
    for (std::uint32_t n = 0; n < kOverload - 1; ++n) {
      see_full(1);
      EXPECT_FALSE(watch_.overload());
    }
    see_slack();
    EXPECT_FALSE(watch_.overload());
  }
}

TEST_F(LoadWatchTest, IsInOverloadFromSoManyFullBurstsInARowUntilOneIsNotFull) {
  see_full(kOverload);
  EXPECT_TRUE(watch_.overload());
  EXPECT_FALSE(watch_.flood());

  see_slack();
  EXPECT_FALSE(watch_.overload());
  see_full(kOverload - 1);
  EXPECT_FALSE(watch_.overload()) << "an overload is not remembered";
}

TEST_F(LoadWatchTest, IsAFloodFromSoManyFullBurstsInARow) {
  see_full(kFlood - 1);
  EXPECT_FALSE(watch_.flood());
  see_full(1);
  EXPECT_TRUE(watch_.flood());
  EXPECT_TRUE(watch_.overload()) << "a flood is an overload, too";
}

TEST_F(LoadWatchTest, TakesEachFullBurstForAFloodSoonAfterOne) {
  see_full(kFlood);
  see_slack();
  EXPECT_FALSE(watch_.flood()) << "this burst was not full";
  EXPECT_FALSE(watch_.overload());

  now_ += LoadWatch::kWary - 1;
  see_full(1);
  EXPECT_TRUE(watch_.flood());
  EXPECT_TRUE(watch_.overload());
}

TEST_F(LoadWatchTest, ForgetsAFloodWhenNothingWasAnOverloadForSoLong) {
  see_full(kFlood);
  now_ += LoadWatch::kWary;
  see_slack();
  see_full(1);
  EXPECT_FALSE(watch_.flood());
  EXPECT_FALSE(watch_.overload());
}

TEST_F(LoadWatchTest, ForgetsItThoughSingleFullBurstsGoOn) {
  see_full(kFlood);
  for (core::Tick waited = 0; waited < LoadWatch::kWary; ++waited, ++now_) {
    see_slack();
    see_full(1);
  }
  see_slack();
  see_full(1);
  EXPECT_FALSE(watch_.flood());
}

TEST_F(LoadWatchTest, RemembersItAnewWithEachOverload) {
  see_full(kFlood);
  for (int again = 0; again < 3; ++again) {
    see_slack();
    now_ += LoadWatch::kWary - 1;
    see_full(kOverload);
    EXPECT_TRUE(watch_.flood());
  }
  see_slack();
  now_ += LoadWatch::kWary - 1;
  see_full(1);
  EXPECT_TRUE(watch_.flood()) << "it is counted from the last overload";
}

TEST_F(LoadWatchTest, KeepsItOverTheEndOfTheClocksRange) {
  now_ = core::Tick{0} - LoadWatch::kWary / 2;
  see_full(kFlood);
  see_slack();
  now_ += LoadWatch::kWary - 1;
  see_full(1);
  EXPECT_TRUE(watch_.flood());

  see_slack();
  now_ += LoadWatch::kWary;
  see_slack();
  see_full(1);
  EXPECT_FALSE(watch_.flood());
}

TEST_F(LoadWatchTest, CanTakeEveryFullBurstForAnOverload) {
  LoadWatch strict(1, 1);
  strict.see(true, kStart);
  EXPECT_TRUE(strict.overload());
  EXPECT_TRUE(strict.flood());
  strict.see(false, kStart);
  EXPECT_FALSE(strict.overload());
}

}  // namespace
}  // namespace sluice::pipeline
