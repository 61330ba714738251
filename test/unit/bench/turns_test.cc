#include "bench/turns.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace sluice::bench {
namespace {

/// Keeps a log of whose windows came when; loses or refuses frames when asked.
class FakeSide final : public Timed {
 public:
  FakeSide(std::string name, std::vector<std::string>& log) : name_(std::move(name)), log_(log) {}

  bool fill(FrameRing&, std::uint64_t round) override {
    if (log_.empty() || log_.back() != name_) {
      log_.push_back(name_);
    }
    in_order_ = in_order_ && round == rounds_++;
    return round != refuses_at;
  }
  void run(const pipeline::Packet*, std::uint32_t n) noexcept override {
    for (int i = 0; i < spins; ++i) {
      __asm__ volatile("" ::: "memory");
    }
    done_ += n - (loses ? 1 : 0);
  }
  [[nodiscard]] std::uint64_t done() const override { return done_; }
  [[nodiscard]] bool in_order() const { return in_order_; }

  bool loses = false;
  std::uint64_t refuses_at = UINT64_MAX;
  int spins = 1;

 private:
  std::string name_;
  std::vector<std::string>& log_;
  std::uint64_t rounds_ = 0;
  std::uint64_t done_ = 0;
  bool in_order_ = true;
};

class TurnsTest : public ::testing::Test {
 protected:
  FakeSide& add(const std::string& name) {
    auto side = std::make_unique<FakeSide>(name, log_);
    FakeSide& added = *side;
    turns_.add(name, std::move(side));
    return added;
  }

  std::vector<std::string> log_;
  Turns turns_{TurnsConfig{.cycles_per_tick = 1, .quantile = 0.05, .rounds = 1}, 1000};
};

TEST_F(TurnsTest, GiveEveryoneAWindowBeforeAnyoneHasAnother) {
  const FakeSide& a = add("a");
  const FakeSide& b = add("b");
  ASSERT_TRUE(turns_.run());
  ASSERT_GT(log_.size(), 20u);
  for (std::size_t n = 0; n < log_.size(); ++n) {
    EXPECT_EQ(log_[n], n % 2 == 0 ? "a" : "b");
  }
  EXPECT_TRUE(a.in_order() && b.in_order());
}

TEST_F(TurnsTest, TellTheLowQuantileAndTheMedianAndWhichItIs) {
  add("a").spins = 100;
  ASSERT_TRUE(turns_.run());
  const Figure figure = turns_.cycles("a");
  EXPECT_GT(figure.told, 0);
  EXPECT_LE(figure.told, figure.median);
  EXPECT_EQ(figure.how, "5 % quantile");
}

TEST_F(TurnsTest, CompareLowQuantilesWithEachOtherAndTurnsWithEachOther) {
  add("short").spins = 100;
  add("long").spins = 10'000;
  ASSERT_TRUE(turns_.run());
  const Figure ratio = turns_.ratio("long", "short");
  EXPECT_DOUBLE_EQ(ratio.told, turns_.cycles("long").told / turns_.cycles("short").told);
  EXPECT_GT(ratio.median, 2);
  const Figure difference = turns_.difference("long", "short");
  EXPECT_DOUBLE_EQ(difference.told, turns_.cycles("long").told - turns_.cycles("short").told);
  EXPECT_GT(difference.median, 0);
}

TEST_F(TurnsTest, FailWhereAFrameIsLost) {
  add("a").loses = true;
  EXPECT_FALSE(turns_.run());
}

TEST_F(TurnsTest, FailWhereASideCannotGoOn) {
  add("a").refuses_at = 30;
  EXPECT_FALSE(turns_.run());
}

TEST_F(TurnsTest, FailToTakeWhatCouldNotBeMade) {
  EXPECT_FALSE(turns_.add_made("a", tl::unexpected(core::Error{"no memory"})));
  EXPECT_FALSE(turns_.has("a"));
}

TEST_F(TurnsTest, GiveASideBackForOthers) {
  const FakeSide& a = add("a");
  add("b");
  const auto taken = turns_.take("a");
  EXPECT_EQ(taken.get(), &a);
  EXPECT_FALSE(turns_.has("a"));
  EXPECT_TRUE(turns_.has("b"));
}

TEST_F(TurnsTest, KeepAFigureThatWasToldByOthers) {
  add("a");
  ASSERT_TRUE(turns_.run());
  Results results = {{"a", 7.0}};
  turns_.tell(results);
  EXPECT_EQ(results.at("a").told, 7);
}

TEST(Step, GivesEachOfTwoAllItsRoundsInOrderSomeAtATime) {
  std::uint64_t next[2] = {0, 0};
  std::size_t before = 1;
  for (std::uint64_t round = 0; round < 10 * Step::kRounds; ++round) {
    const Step step = Step::of(round);
    ASSERT_LT(step.who, 2u);
    EXPECT_EQ(step.round, next[step.who]++);
    EXPECT_EQ(step.who == before, round % Step::kRounds != 0) << round;
    before = step.who;
  }
  EXPECT_EQ(next[0], next[1]);
}

TEST(QuantileName, CallsTheMiddleOneMedian) {
  EXPECT_EQ(quantile_name(0.5), "median");
  EXPECT_EQ(quantile_name(0.025), "2.5 % quantile");
}

TEST(TargetLines, AreFollowedByTheFloorsOfThoseThatWereMeasured) {
  ::testing::internal::CaptureStdout();
  print_targets({{"nat4_64k", 90},
                 {"probe4_64k", {58, 61.5, "5 % quantile"}},
                 {"probe4_4m", 196},
                 {"handed4_64k-nat4_64k", 70},
                 {"bare_handed4_64k-probe4_64k", -1.5}});
  const std::string text = ::testing::internal::GetCapturedStdout();
  const auto targets_end = text.rfind("target ");
  const auto probe =
      text.find("floor  nat4_64k                   58.00 (5 % quantile; median 61.50; ");
  ASSERT_NE(probe, std::string::npos) << text;
  EXPECT_GT(probe, targets_end);
  EXPECT_NE(text.find("floor  handed4_64k-nat4_64k       -1.50 ("), std::string::npos) << text;
  EXPECT_EQ(text.find("nat4_4m"), std::string::npos) << "no such target was measured";
  EXPECT_EQ(text.find("nan"), std::string::npos);
}

TEST(TargetLines, TellHowAFigureWasChosenAndItsMedian) {
  ::testing::internal::CaptureStdout();
  print_targets({{"nat4_64k", {79, 131.2, "5 % quantile"}}, {"memory_bytes_ipv4", 188}});
  const std::string text = ::testing::internal::GetCapturedStdout();
  EXPECT_NE(text.find("pass  # 5 % quantile; median 131.20; no I/O\n"), std::string::npos) << text;
  EXPECT_NE(text.find("pass  # of the table per connection\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace sluice::bench
