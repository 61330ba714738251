// Section 11 and design section 5, P-5 against a mode of the Service.
#include "control/compile/masquerade.h"

#include <gtest/gtest.h>

namespace sluice::compile {
namespace {

using core::ForwardingMode;
using core::TrafficPolicy;

TEST(Masquerade, ByRuleOnlyExternalClusterTraffic) {
  EXPECT_TRUE(masquerades_external(TrafficPolicy::kCluster, ForwardingMode::kByRule));
  EXPECT_FALSE(masquerades_external(TrafficPolicy::kLocal, ForwardingMode::kByRule));
}

TEST(Masquerade, ModeOfTheServiceOverridesTheRule) {
  EXPECT_FALSE(masquerades_external(TrafficPolicy::kCluster, ForwardingMode::kNat));
  EXPECT_FALSE(masquerades_external(TrafficPolicy::kCluster, ForwardingMode::kDr));
  EXPECT_FALSE(masquerades_external(TrafficPolicy::kCluster, ForwardingMode::kIpip));
  EXPECT_TRUE(masquerades_external(TrafficPolicy::kLocal, ForwardingMode::kFullNat));
}

}  // namespace
}  // namespace sluice::compile
