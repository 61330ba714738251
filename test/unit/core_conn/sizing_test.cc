#include "dataplane/core/conn/sizing.h"

#include <gtest/gtest.h>

namespace sluice::core {
namespace {

TEST(Sizing, AMillionFitsIntoTwoMillionSlots) {
  EXPECT_EQ(slots_for(1'000'000), 1u << 21);
  EXPECT_GE(rounded_capacity(1'000'000), 1'000'000u);
  EXPECT_EQ(slots_for(16'000'000), 1u << 25);
}

TEST(Sizing, CountingStopsNear95Percent) {
  for (std::uint32_t slots = kMinSlots; slots <= kMaxSlots && slots != 0; slots *= 2) {
    const double fill = 2.0 * capacity_of_slots(slots) / slots;
    EXPECT_LE(fill, 0.955);
    EXPECT_GE(fill, 0.93);
  }
}

TEST(Sizing, CapacityIsNeverBelowWhatWasAskedFor) {
  for (const std::uint32_t asked : {1u, 30u, 31u, 1000u, 65536u, 500'000u, 31'000'000u}) {
    EXPECT_GE(rounded_capacity(asked), asked);
    EXPECT_EQ(rounded_capacity(rounded_capacity(asked)), rounded_capacity(asked));
  }
}

TEST(Sizing, IsClampedToTheLargestIndex) {
  EXPECT_EQ(slots_for(UINT32_MAX), kMaxSlots);
}

}  // namespace
}  // namespace sluice::core
