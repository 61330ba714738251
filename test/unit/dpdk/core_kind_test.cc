#include "dataplane/dpdk/core_kind.h"

#include <gtest/gtest.h>

namespace sluice::dpdk {
namespace {

TEST(CoreKind, Zen5IsAskedForAllLinesOfABurstAtOnce) {
  EXPECT_EQ(lines_ahead({.amd = true, .family = 26}), 128u);
}

TEST(CoreKind, OthersGetWhatZen3ServesBest) {
  EXPECT_EQ(lines_ahead({.amd = true, .family = 25}), 20u);
  EXPECT_EQ(lines_ahead({.amd = false, .family = 26}), 20u);
  EXPECT_EQ(lines_ahead({}), 20u);
}

#ifdef __x86_64__
TEST(CoreKind, OfThisMachineHasAFamily) {
  EXPECT_NE(this_core().family, 0u);
}
#endif

}  // namespace
}  // namespace sluice::dpdk
