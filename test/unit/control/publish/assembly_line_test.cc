#include "control/publish/assembly_line.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <stdexcept>
#include <thread>
#include <vector>

namespace sluice::publish {
namespace {

constexpr std::size_t kBatches = 3 * core::kBatchWindow + 1;

TEST(AssemblyLine, TakesEachBatchThroughTheStationsInTurn) {
  std::vector<std::vector<int>> passed(kBatches);
  const auto station = [&](int number, bool in_order) {
    return core::Station{
        [&passed, number](std::size_t batch) { passed[batch].push_back(number); }, in_order};
  };
  const std::vector<core::Station> stations = {station(0, false), station(1, true),
                                               station(2, false)};
  AssemblyLine(kBatches, stations).run(core::one_after_another);
  for (const auto& way : passed) {
    EXPECT_EQ(way, (std::vector<int>{0, 1, 2}));
  }
}

/// What a batch leaves behind may be used by the one that comes a window later. The first batch is
/// held until another thread has begun all that it may.
TEST(AssemblyLine, HasNoMoreThanAWindowUnderWay) {
  std::atomic<std::size_t> begun{0};
  std::atomic<bool> first_ended{false};
  std::size_t most = 0;  // of the window, while the first batch is held
  const auto begin = [&](std::size_t batch) {
    if (batch == 0) {
      while (begun + 1 < core::kBatchWindow) {
        std::this_thread::yield();
      }
      for (int n = 0; n < 1000; ++n) {
        std::this_thread::yield();  // it may begin no other, however long this takes
      }
      first_ended = true;
    } else if (!first_ended) {
      most = std::max(most, batch);  // one other thread
    }
    ++begun;
  };
  const std::vector<core::Station> stations = {{begin, false}, {[](std::size_t) {}, true}};
  AssemblyLine(kBatches, stations)
      .run([](std::size_t, const std::function<void(std::size_t)>& work) {
        std::jthread other([&] { work(1); });
        work(0);
      });
  EXPECT_EQ(begun, kBatches);
  EXPECT_EQ(most, core::kBatchWindow - 1);
}

TEST(AssemblyLine, BeginsNothingMoreAfterAnError) {
  std::size_t done = 0;
  const auto fail_at_three = [&](std::size_t batch) {
    if (batch == 3) {
      throw std::runtime_error("no");
    }
    ++done;
  };
  const std::vector<core::Station> stations = {{fail_at_three, true}};
  AssemblyLine line(kBatches, stations);
  EXPECT_THROW(line.run(core::one_after_another), std::runtime_error);
  EXPECT_EQ(done, 3U);
}

TEST(AssemblyLine, OfNothingIsDoneAtOnce) {
  const std::vector<core::Station> stations = {{[](std::size_t) { FAIL(); }, true}};
  AssemblyLine(0, stations).run(core::one_after_another);
}

}  // namespace
}  // namespace sluice::publish
