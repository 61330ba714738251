#include "dataplane/core/sched/locality_cache.h"

#include <gtest/gtest.h>

#include <set>

#include "test/unit/core_sched/sched_fixture.h"

namespace sluice::core {
namespace {

FlowTuple to(const std::string& vip) {
  return Bench::flow("198.51.100.1", 1000, vip);
}
constexpr std::uint64_t kDay = 24 * 60 * 60;

class Locality : public testing::TestWithParam<SchedulerKind> {};
INSTANTIATE_TEST_SUITE_P(Both, Locality,
                         testing::Values(SchedulerKind::kLblc, SchedulerKind::kLblcr));

TEST_P(Locality, StaysWithTheFirstChoiceForADestination) {
  Bench bench(GetParam(), {10, 10, 10});
  bench.set_load(0, 4);
  EXPECT_EQ(bench.pick(to("192.0.2.1")), 1);
  bench.set_load(1, 9);  // more than others, but no more than its weight
  EXPECT_EQ(bench.pick(to("192.0.2.1")), 1);
  EXPECT_EQ(bench.pick(to("192.0.2.2")), 2);  // another destination: as wlc
}

// Overloaded: more than its weight while another has less than half of its own.
TEST_P(Locality, LeavesAnOverloadedOneOnlyWhenAnotherIsHalfIdle) {
  Bench bench(GetParam(), {10, 10});
  EXPECT_EQ(bench.pick(to("192.0.2.1")), 0);
  bench.set_load(0, 11);
  bench.set_load(1, 5);
  EXPECT_EQ(bench.pick(to("192.0.2.1")), 0);
  bench.set_load(1, 4);
  EXPECT_EQ(bench.pick(to("192.0.2.1")), 1);
}

TEST_P(Locality, ForgetsAnEndpointThatTakesNoFlows) {
  Bench bench(GetParam(), {10, 10});
  EXPECT_EQ(bench.pick(to("192.0.2.1")), 0);
  bench.offer({0, 10});
  EXPECT_EQ(bench.pick(to("192.0.2.1")), 1);
  bench.offer({10, 10});
  EXPECT_EQ(bench.pick(to("192.0.2.1")), 1);
}

TEST_P(Locality, ForgetsADestinationUnusedForADay) {
  Bench bench(GetParam(), {10, 10});
  EXPECT_EQ(bench.pick(to("192.0.2.1")), 0);
  bench.set_load(0, 3);
  bench.now_s += kDay;
  EXPECT_EQ(bench.pick(to("192.0.2.1")), 0);
  bench.now_s += kDay + 1;
  EXPECT_EQ(bench.pick(to("192.0.2.1")), 1);
}

TEST(Lblc, ReplacesItsOneEndpoint) {
  Bench bench(SchedulerKind::kLblc, {10, 10});
  EXPECT_EQ(bench.pick(to("192.0.2.1")), 0);
  bench.set_load(0, 11);
  EXPECT_EQ(bench.pick(to("192.0.2.1")), 1);
  bench.set_load(0, 0);
  EXPECT_EQ(bench.pick(to("192.0.2.1")), 1);
}

TEST(Lblcr, AddsToItsSetAndUsesTheLeastLoadedOfIt) {
  Bench bench(SchedulerKind::kLblcr, {10, 10, 10});
  EXPECT_EQ(bench.pick(to("192.0.2.1")), 0);
  bench.set_load(0, 11);
  EXPECT_EQ(bench.pick(to("192.0.2.1")), 1);
  bench.set_load(1, 3);
  bench.set_load(0, 2);
  EXPECT_EQ(bench.pick(to("192.0.2.1")), 0);  // both are in the set; the third, idle, is not
}

TEST(Lblcr, DropsTheMostLoadedOfASetUnchangedForADay) {
  Bench bench(SchedulerKind::kLblcr, {10, 10});
  bench.pick(to("192.0.2.1"));
  bench.set_load(0, 11);
  EXPECT_EQ(bench.pick(to("192.0.2.1")), 1);  // set {0, 1}
  bench.set_load(0, 5);
  bench.set_load(1, 1);
  bench.now_s += kDay - 1;
  bench.pick(to("192.0.2.1"));
  bench.now_s += 2;
  EXPECT_EQ(bench.pick(to("192.0.2.1")), 1);
  bench.set_load(1, 9);
  bench.set_load(0, 0);
  EXPECT_EQ(bench.pick(to("192.0.2.1")), 1);  // 0 has left the set
}

TEST(Lblcr, SetIsBounded) {
  Bench bench(SchedulerKind::kLblcr, std::vector<std::uint16_t>(40, 10));
  for (std::uint32_t i = 0; i < 40; ++i) {
    EXPECT_EQ(bench.pick(to("192.0.2.1")), static_cast<int>(i));
    bench.set_load(i, 11 + i);
  }
  bench.set_load(39, 0);
  EXPECT_EQ(bench.pick(to("192.0.2.1")), 39);
}

TEST(LocalityCache, MakesRoomByTheLeastRecentlyUsed) {
  LocalityCache cache(1);
  const auto address = [](std::uint32_t n) { return IpAddress(Be32::from_host(0x0a000000 + n)); };
  cache.find(ServiceSlot{1}, false, address(0), 1).add(EndpointId{7}, 1);
  for (std::uint32_t n = 1; n < 5000; ++n) {
    cache.find(ServiceSlot{1}, false, address(n), 1 + n).add(EndpointId{8}, 1 + n);
    ASSERT_EQ(cache.find(ServiceSlot{1}, false, address(0), 1 + n).size, 1) << n;
  }
  EXPECT_EQ(cache.find(ServiceSlot{2}, false, address(0), 6000).size, 0);
  EXPECT_EQ(cache.find(ServiceSlot{1}, true, address(0), 6000).size, 0);
}

}  // namespace
}  // namespace sluice::core
