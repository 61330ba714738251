// Sections 5 to 7 and 9: C-1..C-4, EP-1..EP-8, T-2..T-8, N-1..N-3.
#include "control/compile/select.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/compile/empty.h"
#include "control/compile/topology.h"
#include "test/support/small_cluster.h"

namespace sluice::compile {
namespace {

using test::names;
using testing::ElementsAre;
using testing::IsEmpty;

/// An endpoint described by letters: R ready, S serving, T terminating, L local.
struct Spec {
  std::string address;
  std::string flags;
  std::vector<std::string> zones = {};
  std::vector<std::string> nodes = {};
};

class SelectTest : public testing::Test {
 protected:
  core::ServicePort& select(const std::vector<Spec>& specs) {
    sources_.resize(specs.size());
    std::vector<MergedEndpoint> merged;
    for (std::size_t i = 0; i < specs.size(); ++i) {
      const auto has = [&](char c) { return specs[i].flags.find(c) != std::string::npos; };
      sources_[i].for_zones = specs[i].zones;
      sources_[i].for_nodes = specs[i].nodes;
      MergedEndpoint m{specs[i].address + ":80",
                       test::ip(specs[i].address),
                       80,
                       {has('R'), has('S'), has('T')},
                       has('L'),
                       &sources_[i]};
      block_.endpoints.push_back(
          {m.address, 80, weight_of(specs[i]), {}, m.local, has('R'), has('S'), has('T')});
      merged.push_back(m);
    }
    select_endpoints(merged, node_, block_);
    set_empty_verdicts(node_.profile, block_);
    return block_;
  }
  static std::uint16_t weight_of(const Spec& s) {
    return s.flags.find('0') != std::string::npos ? 0 : 1;
  }
  void local_policy(bool internal, bool external) {
    block_.internal_policy = internal ? core::TrafficPolicy::kLocal : core::TrafficPolicy::kCluster;
    block_.external_policy = external ? core::TrafficPolicy::kLocal : core::TrafficPolicy::kCluster;
    block_.externally_accessible = external;
    block_.uses_cluster = !internal || external;
    block_.uses_local = internal || external;
  }

  NodeContext node_ = [] {
    NodeContext n;
    n.node_name = "kestrel";
    n.zone = "west";
    return n;
  }();
  core::ServicePort block_;
  std::vector<model::SliceEndpoint> sources_;
};

TEST_F(SelectTest, NothingInNothingOut) {  // EP-1
  const auto& b = select({});
  EXPECT_FALSE(b.has_any);
  EXPECT_FALSE(b.has_internal);
  EXPECT_EQ(core::EmptyVerdict::kReject, b.internal_when_empty);
}

TEST_F(SelectTest, ReadyOnesAreUsed) {  // C-2, EP-2
  const auto& b = select({{"10.0.0.1", "RS"}, {"10.0.0.2", "S"}, {"10.0.0.3", "RT"}});
  EXPECT_THAT(names(b, b.cluster), ElementsAre("10.0.0.1:80", "10.0.0.3:80"));
}

TEST_F(SelectTest, TerminatingButServingOnesAreTheFallback) {  // C-3, C-4
  const auto& b = select({{"10.0.0.1", "ST"}, {"10.0.0.2", "S"}, {"10.0.0.3", "T"}});
  EXPECT_THAT(names(b, b.cluster), ElementsAre("10.0.0.1:80"));
}

TEST_F(SelectTest, LocalListFallsBackByItself) {  // EP-4, EP-6
  local_policy(true, true);
  const auto& b = select({{"10.0.0.1", "STL"}, {"10.0.0.2", "RS"}});
  EXPECT_THAT(names(b, b.cluster), ElementsAre("10.0.0.2:80"));
  EXPECT_THAT(names(b, b.local), ElementsAre("10.0.0.1:80"));
  EXPECT_TRUE(b.local_is_terminating_fallback);
  EXPECT_THAT(names(b, b.all_reachable), ElementsAre("10.0.0.1:80", "10.0.0.2:80"));  // EP-5
}

TEST_F(SelectTest, LocalPolicyWithoutLocalEndpointDrops) {  // EP-7, EP-8, section 9
  local_policy(true, false);
  const auto& b = select({{"10.0.0.1", "RS"}});
  EXPECT_TRUE(b.has_any);
  EXPECT_FALSE(b.has_internal);
  EXPECT_EQ(core::EmptyVerdict::kDrop, b.internal_when_empty);
}

TEST_F(SelectTest, PoliciesAreJudgedSeparately) {  // N-3
  local_policy(true, true);
  block_.external_policy = core::TrafficPolicy::kCluster;
  const auto& b = select({{"10.0.0.1", "RS"}});
  EXPECT_FALSE(b.has_internal);
  EXPECT_TRUE(b.has_external);
}

TEST_F(SelectTest, WeightZeroTakesNoNewFlow) {
  const auto& b = select({{"10.0.0.1", "RS0"}, {"10.0.0.2", "RS"}});
  EXPECT_THAT(names(b, b.cluster), ElementsAre("10.0.0.2:80"));
  EXPECT_EQ(2U, b.endpoints.size());
}

TEST_F(SelectTest, HintsForThisZoneFilterTheClusterListOnly) {  // T-2, T-3, T-8
  local_policy(false, true);
  const auto& b = select({{"10.0.0.1", "RSL", {"east"}, {}}, {"10.0.0.2", "RS", {"west"}, {}}});
  EXPECT_THAT(names(b, b.cluster), ElementsAre("10.0.0.2:80"));
  EXPECT_THAT(names(b, b.local), ElementsAre("10.0.0.1:80"));
}

TEST_F(SelectTest, OneReadyEndpointWithoutHintDisablesThem) {  // T-4
  const auto& b = select({{"10.0.0.1", "RS", {"east"}, {}}, {"10.0.0.2", "RS", {}, {}}});
  EXPECT_EQ(2U, b.cluster.size());
}

TEST_F(SelectTest, EndpointsThatAreNotReadyHaveNoSayInTheMode) {  // T-3
  const auto& b = select({{"10.0.0.1", "RS", {"west"}, {}},
                          {"10.0.0.2", "RS", {"east"}, {}},
                          {"10.0.0.3", "S", {}, {}}});
  EXPECT_THAT(names(b, b.cluster), ElementsAre("10.0.0.1:80"));
}

TEST_F(SelectTest, NodeHintsComeBeforeZoneHints) {  // T-3
  const auto& b =
      select({{"10.0.0.1", "RS", {"west"}, {"heron"}}, {"10.0.0.2", "RS", {"east"}, {"kestrel"}}});
  EXPECT_THAT(names(b, b.cluster), ElementsAre("10.0.0.2:80"));
}

TEST_F(SelectTest, FallbackIgnoresTopology) {  // EP-2
  const auto& b = select({{"10.0.0.1", "ST", {"east"}, {}}, {"10.0.0.2", "ST", {"west"}, {}}});
  EXPECT_EQ(2U, b.cluster.size());
}

TEST_F(SelectTest, ZoneNobodyHintsUsesEverything) {  // T-4
  node_.zone = "";
  const auto& b = select({{"10.0.0.1", "RS", {"east"}, {}}, {"10.0.0.2", "RS", {"west"}, {}}});
  EXPECT_EQ(2U, b.cluster.size());
}

TEST_F(SelectTest, IpvsNeverDrops) {  // N-6
  node_.profile = Profile::kIpvs;
  local_policy(true, false);
  EXPECT_EQ(core::EmptyVerdict::kReject, select({{"10.0.0.1", "RS"}}).internal_when_empty);
}

TEST(Conditions, AbsentMeansReadyServingNotTerminating) {  // C-1
  const Conditions c = conditions_of({});
  EXPECT_TRUE(c.ready);
  EXPECT_TRUE(c.serving);
  EXPECT_FALSE(c.terminating);
  EXPECT_FALSE(c.fallback());
}

TEST(Conditions, ServingIsNotDerivedFromReady) {  // C-1
  model::SliceEndpoint e;
  e.ready = false;
  e.terminating = true;
  EXPECT_TRUE(conditions_of(e).fallback());
}

}  // namespace
}  // namespace sluice::compile
