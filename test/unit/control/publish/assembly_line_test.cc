#include "control/publish/assembly_line.h"

#include <gtest/gtest.h>

#include <stdexcept>
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

/// What a batch leaves behind may be used by the one that comes a window later.
TEST(AssemblyLine, HasNoMoreThanAWindowUnderWay) {
  std::size_t begun = 0;
  std::size_t ended = 0;
  const auto end = [&](std::size_t) {
    EXPECT_LE(begun - ended, core::kBatchWindow);
    ++ended;
  };
  const std::vector<core::Station> stations = {{[&](std::size_t) { ++begun; }, false},
                                               {end, true}};
  AssemblyLine(kBatches, stations).run(core::one_after_another);
  EXPECT_EQ(ended, kBatches);
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
