// SL-10: from the change of endpoints that a slice tells of until it is in force.
#include "control/publish/trigger_times.h"

#include <gtest/gtest.h>

#include "test/support/cluster_objects.h"

namespace sluice::publish {
namespace {

using core::Family;
using std::chrono::milliseconds;
using std::chrono::seconds;

const TriggerTimes::Time kBegan = *parse_rfc3339("2026-01-01T00:00:00Z");

model::EndpointSlice slice_of(const char* service, const char* name, const char* time) {
  model::EndpointSlice slice = test::make_slice(service, name, {"10.244.0.1"});
  slice.annotations[TriggerTimes::kAnnotation] = time;
  return slice;
}

class TriggerTimesTest : public testing::Test {
 protected:
  void put(const model::EndpointSlice& slice) {
    model::Delta delta;
    delta.slices = {slice};
    take(delta);
  }
  void remove(const model::ObjectName& slice) {
    model::Delta delta;
    delta.deleted_slices = {slice};
    take(delta);
  }
  void take(const model::Delta& delta) {
    const model::ChangeSet changes = model::apply(state_, delta);
    times_.take(changes, state_);
  }
  [[nodiscard]] std::uint64_t counted(Family family = Family::kIpv4) const {
    return times_.durations(family).count();
  }

  TriggerTimes times_{kBegan};
  model::ClusterState state_;
};

TEST_F(TriggerTimesTest, EachTimeCountsOnceWhenItsVersionIsInForce) {
  put(slice_of("web", "a", "2026-01-01T00:00:01.5Z"));
  times_.in_force(state_.version - 1, kBegan + seconds(2));
  EXPECT_EQ(counted(), 0u);
  times_.in_force(state_.version, kBegan + seconds(4));
  times_.in_force(state_.version, kBegan + seconds(9));
  EXPECT_EQ(counted(), 1u);
  EXPECT_DOUBLE_EQ(times_.durations(Family::kIpv4).seconds(), 2.5);
  EXPECT_EQ(counted(Family::kIpv6), 0u);
}

TEST_F(TriggerTimesTest, FamiliesCountApart) {
  model::EndpointSlice six = slice_of("web", "six", "2026-01-01T00:00:01Z");
  six.address_type = "IPv6";
  put(six);
  times_.in_force(state_.version, kBegan + seconds(4));
  EXPECT_EQ(counted(Family::kIpv6), 1u);
  EXPECT_EQ(counted(), 0u);
}

TEST_F(TriggerTimesTest, WhatIsOlderThanTheDaemonOrNoTimeDoesNotCount) {
  put(slice_of("web", "a", "2025-12-31T23:59:59Z"));
  put(slice_of("web", "b", "yesterday"));
  put(test::make_slice("web", "c", {"10.244.0.1"}));
  times_.in_force(state_.version, kBegan + seconds(4));
  EXPECT_EQ(counted(), 0u);
}

TEST_F(TriggerTimesTest, ASliceThatGoesTakesTheTimesOfItsServiceAlong) {
  put(slice_of("web", "a", "2026-01-01T00:00:01Z"));
  put(slice_of("web", "b", "2026-01-01T00:00:01Z"));
  put(slice_of("other", "c", "2026-01-01T00:00:01Z"));
  remove(slice_of("web", "b", "").name);
  times_.in_force(state_.version, kBegan + seconds(4));
  EXPECT_EQ(counted(), 1u);
}

// O-4: no rule is made of it.
TEST_F(TriggerTimesTest, ASliceOfAHeadlessServiceDoesNotCount) {
  model::EndpointSlice headless = slice_of("web", "a", "2026-01-01T00:00:01Z");
  headless.labels["service.kubernetes.io/headless"] = "";
  put(headless);
  times_.in_force(state_.version, kBegan + seconds(4));
  EXPECT_EQ(counted(), 0u);
}

TEST_F(TriggerTimesTest, WhatASinkNeverAppliesIsBounded) {
  const auto most = TriggerTimes::kMostAwaited;
  for (std::size_t n = 0; n <= most; ++n) {
    put(slice_of("web", "a", n % 2 == 0 ? "2026-01-01T00:00:01Z" : "2026-01-01T00:00:02Z"));
  }
  times_.in_force(state_.version, kBegan + seconds(4));
  EXPECT_EQ(counted(), most);
}

TEST(Rfc3339, TimesAsKubernetesWritesThemAndNothingElse) {
  const auto at = parse_rfc3339("2026-02-28T12:30:45.123456789Z");
  ASSERT_TRUE(at);
  EXPECT_EQ(*at - *parse_rfc3339("2026-02-28T12:30:45Z"), std::chrono::nanoseconds(123456789));
  EXPECT_EQ(*parse_rfc3339("2026-02-28T14:30:45.25+02:00"),
            *parse_rfc3339("2026-02-28T12:30:45Z") + milliseconds(250));
  for (const char* text :
       {"", "2026-02-28", "2026-02-28T12:30:45", "2026-02-28T12:30:45+2", "2026-02-28 12:30:45Z",
        "2026-2-28T12:30:45Z", "2026-13-28T12:30:45Z",
        "2261-99-01T00:00:00Z", "2026-02-31T12:30:45Z", "2026-02-28T24:30:45Z",
        "2026-02-28T12:60:45Z", "2026-02-28T12:30:45.Z", "2026-02-28T12:30:45+24:00", "x026-02-28T12:30:45Z", "2999-02-28T12:30:45Z"}) {
    EXPECT_FALSE(parse_rfc3339(text)) << text;
  }
}

}  // namespace
}  // namespace sluice::publish
