// Endpoint conditions (section 5): C-1..C-4.
#include "control/compile/conditions.h"

#include <gtest/gtest.h>

namespace sluice::compile {
namespace {

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
