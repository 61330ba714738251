#include "kni/exception/wish_book.h"

#include <map>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::kni {
namespace {

using std::chrono::milliseconds;
using State = HostNeighbour::State;

core::IpAddress address(std::uint32_t n) {
  return core::IpAddress(core::Be32::from_host(n));
}

class WishBookTest : public testing::Test {
 protected:
  WishBook::Calls calls() {
    WishBook::Calls calls;
    calls.state = [this](const NeighbourWish& wish) {
      const auto at = kernel.find(wish.address);
      return at == kernel.end() ? State::kUnresolved : at->second;
    };
    calls.taken = [this](const NeighbourWish& wish) { taken.push_back(wish.address); };
    calls.ask = [this](const NeighbourWish& wish) {
      asked.push_back(wish.address);
      return !refuses;
    };
    calls.forget = [this](const NeighbourWish& wish) { forgotten.push_back(wish.address); };
    return calls;
  }
  void step(const std::vector<NeighbourWish>& wishes = {}, milliseconds pause = milliseconds(1)) {
    now += pause;
    book.take(wishes, now);
    book.refresh(now);
  }
  void change(const core::IpAddress& of, State state) {
    kernel[of] = state;
    book.changed({0, of, {}, state}, now);
  }
  /// Steps of 10 ms.
  void run(std::chrono::seconds time) {
    for (int n = 0; n < time.count() * 100; ++n) {
      step({}, milliseconds(10));
    }
  }

  std::map<core::IpAddress, State> kernel;
  std::vector<core::IpAddress> taken;
  std::vector<core::IpAddress> asked;
  std::vector<core::IpAddress> forgotten;
  bool refuses = false;
  WishBook::Time now{std::chrono::hours(1)};
  WishBook book{{}, calls()};
};

TEST_F(WishBookTest, AFloodOfOthersIsBoundedInRateAndNumber) {
  std::uint32_t next = 0;
  for (int ms = 0; ms < 3000; ++ms) {
    std::vector<NeighbourWish> wishes;
    for (int n = 0; n < 50; ++n) {
      wishes.push_back({0, address(++next)});
    }
    step(wishes);
    ASSERT_LE(book.size(), 256u);
  }
  EXPECT_LE(asked.size(), 3000u + 125);
  EXPECT_GE(asked.size(), 2900u);
  EXPECT_EQ(asked.size() - forgotten.size(), book.size());
}

TEST_F(WishBookTest, VouchedKnownAndSeenOnesAreNotTouchedByAFloodOfOthers) {
  kernel[address(7)] = State::kReachable;
  std::vector<NeighbourWish> wishes;
  for (std::uint32_t n = 1000; n < 2000; ++n) {
    wishes.push_back({0, address(n)});
  }
  step(wishes);
  step(wishes);
  asked.clear();
  taken.clear();
  wishes.push_back({0, address(7)});
  wishes.push_back({0, address(8), true});
  wishes.push_back({0, address(9), false, true});
  step(wishes);
  EXPECT_THAT(asked, testing::IsSupersetOf({address(8), address(9)}));
  EXPECT_THAT(taken, testing::IsSupersetOf({address(7), address(8), address(9)}));
}

TEST_F(WishBookTest, WhichOthersAreTakenIsLeftToChance) {
  std::uint32_t next = 1000;
  for (int ms = 0; ms < 2000 && std::find(asked.begin(), asked.end(), address(1)) == asked.end();
       ++ms) {
    std::vector<NeighbourWish> wishes;
    for (int n = 0; n < 50; ++n) {
      wishes.push_back({0, address(++next)});
    }
    wishes.push_back({0, address(1)});  // of the last worker
    step(wishes);
  }
  EXPECT_THAT(asked, testing::Contains(address(1)));
}

TEST_F(WishBookTest, ANeighbourWithoutAnAnswerIsForgottenOnceNobodyWishesForIt) {
  step({{0, address(1), true}, {0, address(2), true}, {0, address(3)}});
  change(address(1), State::kReachable);
  run(std::chrono::seconds(20));
  step({{0, address(3)}});
  run(std::chrono::seconds(15));
  EXPECT_THAT(forgotten, testing::ElementsAre(address(2)));
  run(std::chrono::seconds(20));
  EXPECT_THAT(forgotten, testing::ElementsAre(address(2), address(3)));
  EXPECT_EQ(book.size(), 1u);
}

TEST_F(WishBookTest, ALostNeighbourIsAskedForSoonAndKeptForAsLongAsANewOne) {
  step({{0, address(1)}});
  change(address(1), State::kReachable);
  run(std::chrono::seconds(100));
  asked.clear();
  change(address(1), State::kUnresolved);
  step({}, milliseconds(100));
  EXPECT_THAT(asked, testing::ElementsAre(address(1)));
  run(std::chrono::seconds(25));
  EXPECT_TRUE(forgotten.empty());
  run(std::chrono::seconds(10));
  EXPECT_THAT(forgotten, testing::ElementsAre(address(1)));
}

TEST_F(WishBookTest, AFailedOneThatIsWishedForOverAndOverIsAskedForNowAndThen) {
  step({{0, address(1), true}});
  change(address(1), State::kFailed);
  for (int n = 0; n < 1000; ++n) {
    step({{0, address(1), true}});
  }
  EXPECT_GE(asked.size(), 9u);
  EXPECT_LE(asked.size(), 12u);
}

TEST_F(WishBookTest, WhatTheKernelRefusedIsAskedForAgainSoon) {
  refuses = true;
  step({{0, address(1), true}});
  refuses = false;
  asked.clear();
  step({}, milliseconds(100));
  EXPECT_THAT(asked, testing::ElementsAre(address(1)));
}

TEST_F(WishBookTest, UnmanagedNeighboursAreKeptFreshAndManagedOnesLeftAlone) {
  kernel[address(1)] = State::kReachable;
  step({{0, address(1)}});
  EXPECT_EQ(asked.size(), 1u);  // makes it managed
  run(std::chrono::seconds(60));
  EXPECT_EQ(asked.size(), 1u);
  book.set_managed(false);
  run(std::chrono::seconds(60));
  EXPECT_GE(asked.size(), 3u);
}

TEST_F(WishBookTest, OwnAndPermanentAddressesAreNeverAskedFor) {
  kernel[address(1)] = State::kOwn;
  kernel[address(2)] = State::kPermanent;
  step({{0, address(1), true}, {0, address(2), true}});
  run(std::chrono::seconds(60));
  EXPECT_TRUE(asked.empty());
  EXPECT_THAT(taken, testing::ElementsAre(address(1), address(2)));
  EXPECT_TRUE(forgotten.empty());
}

TEST_F(WishBookTest, ANeighbourThatIsNoLongerPermanentIsAskedFor) {
  kernel[address(1)] = State::kPermanent;
  step({{0, address(1), true}});
  change(address(1), State::kUnresolved);
  step({}, milliseconds(100));
  EXPECT_THAT(asked, testing::ElementsAre(address(1)));
}

}  // namespace
}  // namespace sluice::kni
