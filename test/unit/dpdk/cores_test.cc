#include "dataplane/dpdk/cores.h"

#include "dataplane/pipeline/packet.h"

#include <gtest/gtest.h>

namespace sluice::dpdk {
namespace {

std::vector<std::uint32_t> range(std::uint32_t first, std::uint32_t last) {
  std::vector<std::uint32_t> cores;
  for (std::uint32_t c = first; c <= last; ++c) {
    cores.push_back(c);
  }
  return cores;
}

// F92: gaps in the core list.
TEST(ChooseCores, TakesNamedCoresWithGaps) {
  std::vector<std::uint32_t> available = range(0, 31);
  const std::vector<std::uint32_t> wanted = {1, 2, 3, 11, 12, 18};

  const auto cores = choose_cores(6, wanted, available);

  ASSERT_TRUE(cores);
  EXPECT_EQ(*cores, wanted);
}

// F92: CPU numbers above RTE_MAX_LCORE (128) and the main core last.
TEST(ChooseCores, TakesCoreNumbersAboveTheLcoreLimit) {
  const std::vector<std::uint32_t> wanted = {200, 0};

  const auto cores = choose_cores(2, wanted, range(0, 255));

  ASSERT_TRUE(cores);
  EXPECT_EQ(lcores_argument(*cores, range(0, 255)), "0@(1-199,201-255),1@200,2@0");
}

TEST(ChooseCores, ChoosesFromTheEndWhenNoneAreNamed) {
  const auto cores = choose_cores(2, {}, range(0, 3));

  ASSERT_TRUE(cores);
  EXPECT_EQ(*cores, (std::vector<std::uint32_t>{2, 3}));
}

TEST(ChooseCores, SharesTheOnlyCoreWithTheControlSide) {
  const auto cores = choose_cores(1, {}, range(0, 0));

  ASSERT_TRUE(cores);
  EXPECT_EQ(lcores_argument(*cores, range(0, 0)), "0@(0),1@0");
}

TEST(ChooseCores, RefusesMoreWorkersThanCores) {
  const auto cores = choose_cores(3, {}, range(0, 1));

  ASSERT_FALSE(cores);
  EXPECT_EQ(cores.error().message,
            "workers: 3 workers asked, but only 2 cores are there (cores of this process: 0-1)");
}

TEST(ChooseCores, RefusesACoreNamedTwice) {
  const std::vector<std::uint32_t> wanted = {1, 1};

  const auto cores = choose_cores(2, wanted, range(0, 3));

  ASSERT_FALSE(cores);
  EXPECT_EQ(cores.error().message,
            "workers: core 1 is named twice (cores of this process: 0-3)");
}

TEST(ChooseCores, RefusesACoreTheHostDoesNotHave) {
  const std::vector<std::uint32_t> available = {0, 1, 2, 5};
  const std::vector<std::uint32_t> wanted = {4};

  const auto cores = choose_cores(1, wanted, available);

  ASSERT_FALSE(cores);
  EXPECT_EQ(cores.error().message,
            "workers: core 4 does not exist or may not be used (cores of this process: 0-2,5)");
}

TEST(ChooseCores, RefusesMoreWorkersThanAnyHostMayHave) {
  constexpr auto kTooMany = static_cast<std::uint32_t>(pipeline::kMaxWorkers + 1);

  EXPECT_FALSE(choose_cores(kTooMany, {}, range(0, 255)));
  EXPECT_FALSE(choose_cores(0, {}, range(0, 255)));
}

TEST(AvailableCores, AreNotEmpty) { EXPECT_FALSE(available_cores().empty()); }

}  // namespace
}  // namespace sluice::dpdk
