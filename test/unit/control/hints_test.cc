#include "control/compile/hints.h"

#include <gtest/gtest.h>

namespace sluice::compile {
namespace {

model::SliceEndpoint endpoint(const char* zone, std::optional<bool> ready = true) {
  model::SliceEndpoint e;
  if (*zone != '\0') {
    e.zone = zone;
  }
  e.node_name = "n1";
  e.ready = ready;
  return e;
}

model::EndpointSlice slice(std::vector<model::SliceEndpoint> endpoints) {
  model::EndpointSlice s;
  s.endpoints = std::move(endpoints);
  return s;
}

model::EndpointSlice hinted(model::EndpointSlice s, std::vector<std::string> zones) {
  for (std::size_t i = 0; i < zones.size(); ++i) {
    s.endpoints[i].for_zones = {zones[i]};
  }
  return s;
}

const ZoneRatios kEqual{{"a", 0.5}, {"b", 0.5}};

model::Service service(std::map<std::string, std::string> annotations, std::string distribution) {
  model::Service s;
  s.annotations = std::move(annotations);
  s.traffic_distribution = std::move(distribution);
  return s;
}

// TH-1
TEST(HintMode, AnnotationWinsOverTrafficDistribution) {
  EXPECT_EQ(hint_mode(service({{"service.kubernetes.io/topology-mode", "Auto"}}, "PreferSameNode")),
            HintMode::kAuto);
}

TEST(HintMode, DeprecatedAnnotationHasPrecedenceEvenWhenItSaysNo) {
  EXPECT_EQ(hint_mode(service({{"service.kubernetes.io/topology-aware-hints", "Disabled"},
                               {"service.kubernetes.io/topology-mode", "Auto"}},
                              "PreferClose")),
            HintMode::kSameZone);
}

TEST(HintMode, UnknownWishMeansNoHints) {
  EXPECT_EQ(hint_mode(service({}, "PreferMars")), HintMode::kNone);
  EXPECT_EQ(hint_mode(service({{"service.kubernetes.io/topology-mode", "AUTO"}}, "")),
            HintMode::kNone);
}

TEST(Hints, NoModeRemovesHintsAlsoFromUnchangedSlices) {
  const auto plan = plan_hints(
      HintMode::kNone, {{}, {hinted(slice({endpoint("a")}), {"a"}), slice({endpoint("b")})}}, {});
  ASSERT_EQ(plan.slices.rewritten.size(), 1u);
  EXPECT_TRUE(plan.slices.rewritten[0].endpoints[0].for_zones.empty());
  EXPECT_EQ(plan.slices.unchanged.size(), 1u);
}

// TH-2
TEST(Hints, DistributionLeavesUnchangedSlicesWithTheRightHintsAlone) {
  const auto good = hinted(slice({endpoint("a")}), {"a"});
  const auto bad = hinted(slice({endpoint("b")}), {"a"});
  const auto plan = plan_hints(HintMode::kSameZone, {{}, {good, bad}}, {});
  ASSERT_EQ(plan.slices.unchanged.size(), 1u);
  ASSERT_EQ(plan.slices.rewritten.size(), 1u);
  EXPECT_EQ(plan.slices.rewritten[0].endpoints[0].for_zones, std::vector<std::string>{"b"});
}

TEST(Hints, DistributionLeavesEndpointsThatAreNotReadyAsTheyAre) {
  auto s = hinted(slice({endpoint("b", false), endpoint("b", std::nullopt)}), {"a", "a"});
  const auto plan = plan_hints(HintMode::kSameZone, {{s}, {}}, {});
  EXPECT_EQ(plan.slices.rewritten[0], s);
}

// TH-4, TH-9
TEST(Hints, AutoCountsOnlyExplicitlyReadyEndpoints) {
  const auto plan = plan_hints(HintMode::kAuto,
                               {{slice({endpoint("a"), endpoint("b", std::nullopt)})}, {}}, kEqual);
  EXPECT_EQ(plan.withdrawn, "fewer endpoints than zones");
}

TEST(Hints, WithdrawalReachesUnchangedSlices) {
  const auto plan =
      plan_hints(HintMode::kAuto, {{}, {hinted(slice({endpoint("a")}), {"a"})}}, std::nullopt);
  EXPECT_EQ(plan.withdrawn, "insufficient node info");
  ASSERT_EQ(plan.slices.rewritten.size(), 1u);
  EXPECT_TRUE(plan.slices.rewritten[0].endpoints[0].for_zones.empty());
}

TEST(Hints, AutoTakesHintsFromEndpointsThatAreNotReady) {
  auto s = slice({endpoint("a"), endpoint("b"), endpoint("a", false)});
  s.endpoints[2].for_zones = {"a"};
  const auto plan = plan_hints(HintMode::kAuto, {{s}, {}}, kEqual);
  EXPECT_TRUE(plan.slices.rewritten[0].endpoints[2].for_zones.empty());
}

// TH-6
TEST(Hints, GoodUnchangedSlicesKeepTheirHintsAndCount) {
  const auto kept = hinted(slice({endpoint("b"), endpoint("b")}), {"a", "b"});
  const auto plan =
      plan_hints(HintMode::kAuto, {{slice({endpoint("a"), endpoint("b")})}, {kept}}, kEqual);
  EXPECT_EQ(plan.slices.unchanged, std::vector{kept});
  EXPECT_EQ(plan.per_zone, (HintsPerZone{{"a", 2}, {"b", 2}}));
}

TEST(Hints, UnchangedSliceIsRewrittenWhenItCannotStay) {
  const auto no_hint = slice({endpoint("a"), endpoint("b")});
  const auto zone_left = hinted(slice({endpoint("a"), endpoint("b")}), {"a", "z"});
  const auto too_many = hinted(slice({endpoint("a"), endpoint("a"), endpoint("b"), endpoint("b")}),
                               {"a", "a", "a", "a"});
  for (const auto& s : {no_hint, zone_left, too_many}) {
    const auto plan = plan_hints(HintMode::kAuto, {{}, {s}}, kEqual);
    EXPECT_TRUE(plan.slices.unchanged.empty());
    EXPECT_FALSE(plan.withdrawn.has_value());
  }
}

// TH-7
TEST(Hints, MovesGoInSliceOrder) {
  const auto plan = plan_hints(HintMode::kAuto,
                               {{slice({endpoint("b"), endpoint("a"), endpoint("b"), endpoint("b"),
                                        endpoint("b"), endpoint("a")})},
                                {}},
                               kEqual);
  EXPECT_EQ(plan.moved, 1u);
  EXPECT_EQ(plan.slices.rewritten[0].endpoints[0].for_zones, std::vector<std::string>{"a"});
}

// TH-3
TEST(ZoneRatios, NodeWithoutCpuMakesTheInformationInsufficient) {
  const std::vector<HintNode> nodes{{"a", 4000, true, {}}, {"b", 0, true, {}}};
  EXPECT_FALSE(zone_ratios(nodes).has_value());
}

TEST(ZoneRatios, ShareOfCpuPerZone) {
  const std::vector<HintNode> nodes{{"a", 3000, true, {}}, {"b", 1000, true, {}}};
  EXPECT_EQ(zone_ratios(nodes), (ZoneRatios{{"a", 0.75}, {"b", 0.25}}));
}

}  // namespace
}  // namespace sluice::compile
