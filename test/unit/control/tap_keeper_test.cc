#include "control/tap_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::daemon {
namespace {

using kni::TapLink;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class TapKeeperTest : public testing::Test {
 protected:
  TapKeeperTest() {
    for (const std::size_t port : {std::size_t{0}, std::size_t{1}}) {
      say(port, TapLink::kUp);
    }
  }
  void say(std::size_t port, TapLink link) { keeper.changed({port, link}, now); }
  TapKeeper::Calls calls() {
    TapKeeper::Calls all;
    all.remake = [this](std::size_t port) { return act("remake " + std::to_string(port), remake); };
    all.set_up = [this](std::size_t port) { return act("set up " + std::to_string(port), set_up); };
    all.fault = [this](std::size_t port, std::string fault) { faults[port] = std::move(fault); };
    all.warn = [this](const std::string& line) { lines.push_back(line); };
    return all;
  }
  core::Result<void> act(std::string what, const std::string& error) {
    done.push_back(std::move(what));
    return error.empty() ? core::Result<void>{} : tl::make_unexpected(core::Error{error});
  }

  std::string remake;  ///< error of the call; "": it succeeds
  std::string set_up;
  std::vector<std::string> done;
  std::vector<std::string> lines;
  std::string faults[2];
  TapKeeper::Clock::time_point now{};
  TapKeeper keeper{{{"a", "slc-a"}, {"b", "slc-b"}}, calls()};
};

TEST_F(TapKeeperTest, DoesNothingAboutTapsThatAreUpAtTheStart) {
  EXPECT_THAT(done, IsEmpty());
  EXPECT_THAT(lines, IsEmpty());
}

TEST_F(TapKeeperTest, MakesADeletedTapAnewAndSaysSoInOneLine) {
  say(1, TapLink::kGone);
  say(1, TapLink::kUp);  // what the kernel tells of our own doing

  EXPECT_THAT(done, ElementsAre("remake 1", "set up 1"));
  EXPECT_THAT(lines, ElementsAre("port b: its tap slc-b was deleted: made anew, with its addresses "
                                 "and routes"));
  EXPECT_EQ(faults[1], "");
}

TEST_F(TapKeeperTest, GivesATapThatWasDownItsAddressesAndRoutesAgain) {
  say(0, TapLink::kDown);
  EXPECT_THAT(done, IsEmpty()) << "an operator wants it down";
  EXPECT_THAT(faults[0], HasSubstr("slc-a is down"));

  say(0, TapLink::kUp);

  EXPECT_THAT(done, ElementsAre("set up 0"));
  EXPECT_EQ(faults[0], "");
  EXPECT_EQ(lines.size(), 2u);
}

TEST_F(TapKeeperTest, SetsATapUpAgainThatWasDownTooBrieflyToBeSeen) {
  say(0, TapLink::kUp);

  EXPECT_THAT(done, ElementsAre("set up 0"));
}

TEST_F(TapKeeperTest, TriesEverySecondWhatFailedAndTellsItOnce) {
  remake = "no device";
  say(0, TapLink::kGone);
  EXPECT_THAT(faults[0], HasSubstr("no device"));

  keeper.retry(now);
  EXPECT_EQ(done.size(), 1u) << "too early";
  now += TapKeeper::kRetry;
  keeper.retry(now);
  now += TapKeeper::kRetry;
  keeper.retry(now);
  EXPECT_EQ(done.size(), 3u);
  EXPECT_LE(lines.size(), 2u);

  remake = "";
  now += TapKeeper::kRetry;
  keeper.retry(now);
  EXPECT_EQ(faults[0], "");
  EXPECT_EQ(done.back(), "set up 0");
  now += TapKeeper::kRetry;
  keeper.retry(now);
  EXPECT_EQ(done.size(), 5u) << "mended";
}

TEST_F(TapKeeperTest, DoesNotMakeATapTwiceWhenOnlyItsAddressesFailed) {
  set_up = "no route";
  say(0, TapLink::kGone);
  set_up = "";
  now += TapKeeper::kRetry;

  keeper.retry(now);

  EXPECT_THAT(done, ElementsAre("remake 0", "set up 0", "set up 0"));
  EXPECT_EQ(faults[0], "");
}

}  // namespace
}  // namespace sluice::daemon
