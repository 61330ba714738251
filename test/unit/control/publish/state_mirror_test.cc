#include "control/publish/state_mirror.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <new>
#include <thread>

#include "test/support/cluster_objects.h"

namespace {
/// Allocations of this thread until one fails.
thread_local std::size_t allocations_left = std::numeric_limits<std::size_t>::max();
}  // namespace

// The single forms, all of them: ASan brings its own of each that is left out and takes only back
// what it gave. The array and the aligned ones stay in pairs, the library's or ASan's.
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  if (allocations_left == 0) {
    return nullptr;
  }
  --allocations_left;
  return std::malloc(size == 0 ? 1 : size);
}
[[gnu::noinline]] void* operator new(std::size_t size) {
  void* place = operator new(size, std::nothrow);
  if (place == nullptr) {
    throw std::bad_alloc();
  }
  return place;
}
[[gnu::noinline]] void operator delete(void* place) noexcept { std::free(place); }
[[gnu::noinline]] void operator delete(void* place, std::size_t) noexcept { std::free(place); }
[[gnu::noinline]] void operator delete(void* place, const std::nothrow_t&) noexcept {
  std::free(place);
}

namespace sluice::publish {
namespace {

using test::make_service;
using test::make_state;
using test::upsert;

class StateMirrorTest : public testing::Test {
 protected:
  StateMirrorTest() { fill(); }
  void fill() {
    while (!mirror_.fill_some(owner_)) {
    }
  }
  void change(const model::Delta& delta) {
    model::apply(owner_, delta);
    (void)mirror_.add(delta, owner_.version);
  }
  static model::Delta service(int number) {
    return upsert({make_service("s" + std::to_string(number), "10.96.0.1")});
  }

  model::ClusterState owner_ = make_state({make_service("a", "10.96.0.1")}, {});
  StateMirror mirror_;
};

TEST_F(StateMirrorTest, FollowsEveryDelta) {
  change(service(1));
  EXPECT_EQ(*mirror_.read(), owner_);
  model::Delta gone;
  gone.deleted_services = {{"default", "a"}};
  change(gone);
  EXPECT_EQ(*mirror_.read(), owner_);
}

TEST_F(StateMirrorTest, CopiesOnlyWhileAnEarlierReaderHoldsItsState) {
  const auto* first = mirror_.read().get();
  change(service(1));
  const auto second = mirror_.read();
  EXPECT_EQ(second.get(), first);  // nobody had it any more
  change(service(2));
  const auto third = mirror_.read();
  EXPECT_NE(third.get(), second.get());
  EXPECT_EQ(second->services.size(), 2u);
  EXPECT_EQ(*third, owner_);
}

TEST_F(StateMirrorTest, IsEmptyAfterResetUntilItIsFilled) {
  (void)mirror_.reset();
  EXPECT_FALSE(mirror_.live());
  EXPECT_EQ(mirror_.read(), nullptr);
  change(service(1));
  fill();
  EXPECT_EQ(*mirror_.read(), owner_);
}

// A copy of a large state is made in steps, so that it holds up no change.
TEST_F(StateMirrorTest, TakesChangesInTheMiddleOfACopy) {
  (void)mirror_.reset();
  for (int i = 0; i < 300; ++i) {
    model::apply(owner_, service(i));
  }
  ASSERT_FALSE(mirror_.fill_some(owner_));
  model::Delta gone;
  gone.deleted_services = {{"default", "a"}, {"default", "s299"}};
  change(gone);                                      // one that is copied, one that is not
  change(service(5000));                             // behind everything
  change(upsert({make_service("a", "10.96.0.9")}));  // back again, another
  EXPECT_EQ(mirror_.read(), nullptr);                // nor does a reader take them away
  fill();
  EXPECT_EQ(*mirror_.read(), owner_);
}

TEST_F(StateMirrorTest, LosesNoChangeWhenAReaderRunsOutOfMemory) {
  const auto holder = mirror_.read();  // so that the next reader makes a copy
  change(service(1));
  change(service(2));
  std::shared_ptr<const model::ClusterState> state;
  for (std::size_t enough = 0; state == nullptr; ++enough) {
    allocations_left = enough;
    try {
      state = mirror_.read();
    } catch (const std::bad_alloc&) {
    }
    allocations_left = std::numeric_limits<std::size_t>::max();
  }
  EXPECT_EQ(*state, owner_);
  EXPECT_EQ(holder->services.size(), 1u);
}

TEST_F(StateMirrorTest, GivesUpWhenNobodyReads) {
  model::Delta many;
  for (int i = 0; i < 1000; ++i) {
    many.deleted_nodes.push_back("n" + std::to_string(i));
  }
  std::shared_ptr<const void> dropped;
  for (std::size_t i = 0; i <= StateMirror::kMaxPending / 1000; ++i) {
    EXPECT_EQ(dropped, nullptr);
    dropped = mirror_.add(many, i + 1);
  }
  EXPECT_FALSE(mirror_.live());
  EXPECT_NE(dropped, nullptr);  // the caller's to free
}

TEST_F(StateMirrorTest, ReadersInThreadsSeeWholeStates) {
  std::atomic<bool> stop{false};
  const auto read = [&] {
    std::size_t last = 0;
    while (!stop) {
      const auto state = mirror_.read();
      EXPECT_GE(state->services.size(), last);
      EXPECT_EQ(state->version, state->services.size() - 1);
      last = state->services.size();
    }
  };
  std::thread one(read);
  std::thread two(read);
  for (int i = 0; i < 300; ++i) {
    change(service(i));
  }
  stop = true;
  one.join();
  two.join();
  EXPECT_EQ(*mirror_.read(), owner_);
}

}  // namespace
}  // namespace sluice::publish
