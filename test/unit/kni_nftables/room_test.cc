#include "kni/nftables/room.h"

#include <string>

#include <gtest/gtest.h>

#include "kni/nftables/layout.h"

namespace sluice::kni::nft {
namespace {

Ruleset with_cluster_ips(std::size_t count) {
  Ruleset ruleset;
  ruleset.sets[names::kClusterIps] = node_sets().at(names::kClusterIps);
  for (std::size_t i = 0; i < count; ++i) {
    ruleset.elements[names::kClusterIps].emplace_back(std::to_string(i), ElementValue());
  }
  declare_sizes(ruleset);
  return ruleset;
}

TEST(Rooms, ALargeSetHasPlaceForTwiceWhatItBeginsWithAndASmallOneGrows) {
  EXPECT_EQ(with_cluster_ips(100).sets[names::kClusterIps].size, 0u);
  EXPECT_EQ(with_cluster_ips(2000).sets[names::kClusterIps].size, 4000u);
}

TEST(Rooms, ASetThatIsFullIsMadeAnewAndOneThatIsNotStays) {
  const Ruleset first = with_cluster_ips(2000);
  const Ruleset fits = with_cluster_ips(4000);
  EXPECT_TRUE(make_plan(first, fits, Known::kNone).new_sets.empty());
  const Ruleset more = with_cluster_ips(4001);
  EXPECT_EQ(make_plan(first, more, Known::kNone).new_sets.size(), 1u);
}

TEST(Rooms, AChangeThatWouldOverfillASetIsNotAdmitted) {
  const Ruleset first = with_cluster_ips(2000);
  Rooms rooms;
  rooms.take(make_plan({}, first));
  const Ruleset fits = with_cluster_ips(4000);
  const Plan plan = make_plan(first, fits);
  ASSERT_TRUE(rooms.admit(plan));
  rooms.take(plan);
  const Ruleset more = with_cluster_ips(4001);
  EXPECT_FALSE(rooms.admit(make_plan(fits, more)));
  rooms.take(make_plan(fits, first));
  EXPECT_TRUE(rooms.admit(plan));
}

// One that stays keeps the size it was made with.
TEST(Rooms, WhatIsWrittenAnewHasThePlaceOfTheSetThatWasThere) {
  Ruleset before = with_cluster_ips(2000);
  before.elements.clear();  // not read when all is written anew
  const Ruleset after = with_cluster_ips(3900);
  Rooms rooms(before);
  rooms.take(make_plan(before, after, Known::kNone));
  EXPECT_TRUE(rooms.admit(make_plan(after, with_cluster_ips(4000))));
  EXPECT_FALSE(rooms.admit(make_plan(after, with_cluster_ips(4001))));
}

}  // namespace
}  // namespace sluice::kni::nft
