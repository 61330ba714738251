// Endpoint selection (section 6): EP-1..EP-8, with C-2..C-4 of the lists.
#include "control/compile/select.h"

#include "test/unit/control/compile/select_fixture.h"

namespace sluice::compile {
namespace {

using test::names;
using testing::ElementsAre;
using SelectTest = Selecting;

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

TEST_F(SelectTest, FallbackIgnoresTopology) {  // EP-2
  const auto& b = select({{"10.0.0.1", "ST", {"east"}, {}}, {"10.0.0.2", "ST", {"west"}, {}}});
  EXPECT_EQ(2U, b.cluster.size());
}

}  // namespace
}  // namespace sluice::compile
