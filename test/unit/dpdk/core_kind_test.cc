#include "dataplane/dpdk/core_kind.h"

#include <gtest/gtest.h>

namespace sluice::dpdk {
namespace {

TEST(CoreKind, Zen5IsAskedForAllLinesInTwoGroups) {
  const auto pace = memory_pace({.amd = true, .family = 26});
  EXPECT_EQ(pace.lines_ahead, 128u);
  EXPECT_EQ(pace.group, pipeline::kBurst / 2);
}

TEST(CoreKind, OthersGetWhatZen3ServesBest) {
  for (const CoreKind kind : {CoreKind{.amd = true, .family = 25},
                              CoreKind{.amd = false, .family = 26}, CoreKind{}}) {
    EXPECT_EQ(memory_pace(kind).lines_ahead, 20u);
    EXPECT_EQ(memory_pace(kind).group, pipeline::kBurst);
  }
}

#ifdef __x86_64__
TEST(CoreKind, OfThisMachineHasAFamily) {
  EXPECT_NE(this_core().family, 0u);
}
#endif

}  // namespace
}  // namespace sluice::dpdk
