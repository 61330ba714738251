// Topology hints on the node (section 7): T-1..T-6, T-8.
#include "control/compile/topology.h"

#include "test/unit/control/compile/select_fixture.h"

namespace sluice::compile {
namespace {

using test::names;
using testing::ElementsAre;
using TopologyTest = Selecting;

TEST_F(TopologyTest, HintsForThisZoneFilterTheClusterListOnly) {  // T-2, T-3, T-8
  local_policy(false, true);
  const auto& b = select({{"10.0.0.1", "RSL", {"east"}, {}}, {"10.0.0.2", "RS", {"west"}, {}}});
  EXPECT_THAT(names(b, b.cluster), ElementsAre("10.0.0.2:80"));
  EXPECT_THAT(names(b, b.local), ElementsAre("10.0.0.1:80"));
}

TEST_F(TopologyTest, OneReadyEndpointWithoutHintDisablesThem) {  // T-4
  const auto& b = select({{"10.0.0.1", "RS", {"east"}, {}}, {"10.0.0.2", "RS", {}, {}}});
  EXPECT_EQ(2U, b.cluster.size());
}

TEST_F(TopologyTest, EndpointsThatAreNotReadyHaveNoSayInTheMode) {  // T-3
  const auto& b = select({{"10.0.0.1", "RS", {"west"}, {}},
                          {"10.0.0.2", "RS", {"east"}, {}},
                          {"10.0.0.3", "S", {}, {}}});
  EXPECT_THAT(names(b, b.cluster), ElementsAre("10.0.0.1:80"));
}

TEST_F(TopologyTest, NodeHintsComeBeforeZoneHints) {  // T-3
  const auto& b =
      select({{"10.0.0.1", "RS", {"west"}, {"heron"}}, {"10.0.0.2", "RS", {"east"}, {"kestrel"}}});
  EXPECT_THAT(names(b, b.cluster), ElementsAre("10.0.0.2:80"));
}

TEST_F(TopologyTest, ZoneNobodyHintsUsesEverything) {  // T-4
  node_.zone = "";
  const auto& b = select({{"10.0.0.1", "RS", {"east"}, {}}, {"10.0.0.2", "RS", {"west"}, {}}});
  EXPECT_EQ(2U, b.cluster.size());
}

}  // namespace
}  // namespace sluice::compile
