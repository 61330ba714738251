#include "control/model/model.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "test/support/small_cluster.h"

namespace sluice::model {
namespace {

TEST(OwnerOf, IsTheServiceNamedByTheLabel) {
  EXPECT_EQ((ObjectName{"shop", "cart"}), owner_of(test::slice("cart", {})));
}

// SL-2.
TEST(OwnerOf, IsNobodyWithoutLabelNamespaceOrName) {
  EndpointSlice no_label = test::slice("cart", {});
  no_label.labels.clear();
  EndpointSlice empty_label = test::slice("", {});
  EndpointSlice no_namespace = test::slice("cart", {});
  no_namespace.name.ns.clear();
  EXPECT_FALSE(owner_of(no_label));
  EXPECT_FALSE(owner_of(empty_label));
  EXPECT_FALSE(owner_of(no_namespace));
}

TEST(Apply, NamesWhatChangedAndGrowsTheVersion) {
  ClusterState state;
  Delta delta;
  delta.services.push_back(test::service("cart", "10.43.0.20"));
  delta.slices.push_back(test::slice("cart", {"10.42.1.20"}));
  delta.nodes.emplace_back().name = "kestrel";
  delta.service_cidrs.push_back({"kubernetes", {"10.43.0.0/16"}});
  const ChangeSet changes = apply(state, delta);
  EXPECT_EQ(1U, state.version);
  EXPECT_EQ((std::vector<ObjectName>{{"shop", "cart"}}), changes.services);
  EXPECT_EQ((std::vector<ObjectName>{{"shop", "cart-a"}}), changes.slices);
  EXPECT_EQ((std::vector<ObjectName>{{"shop", "cart"}}), changes.slice_owners);
  EXPECT_EQ((std::vector<SliceMove>{{{"shop", "cart-a"}, std::nullopt}}), changes.moved_slices);
  EXPECT_TRUE(changes.nodes);
  EXPECT_TRUE(changes.service_cidrs);
}

// SL-3: equal objects and deletions of unknown ones are no change.
TEST(Apply, TakesNoNoticeOfWhatIsEqualOrUnknown) {
  ClusterState state;
  Delta delta;
  delta.services.push_back(test::service("cart", "10.43.0.20"));
  apply(state, delta);
  delta.deleted_slices.push_back({"shop", "unknown"});
  const ChangeSet changes = apply(state, delta);
  EXPECT_TRUE(changes.empty());
  EXPECT_EQ(1U, state.version);
}

TEST(Apply, NamesBothOwnersOfASliceThatMoves) {
  ClusterState state;
  Delta delta;
  delta.slices.push_back(test::slice("cart", {"10.42.1.20"}));
  apply(state, delta);
  delta.slices.front().labels["kubernetes.io/service-name"] = "till";
  const ChangeSet changes = apply(state, delta);
  EXPECT_EQ((std::vector<ObjectName>{{"shop", "cart"}, {"shop", "till"}}), changes.slice_owners);
  EXPECT_EQ((std::vector<SliceMove>{{{"shop", "cart-a"}, ObjectName{"shop", "cart"}}}),
            changes.moved_slices);
}

TEST(Apply, ASliceThatKeepsItsOwnerDoesNotMove) {
  ClusterState state;
  Delta delta;
  delta.slices.push_back(test::slice("cart", {"10.42.1.20"}));
  apply(state, delta);
  delta.slices.front().endpoints.front().ready = false;
  const ChangeSet changes = apply(state, delta);
  EXPECT_EQ((std::vector<ObjectName>{{"shop", "cart"}}), changes.slice_owners);
  EXPECT_TRUE(changes.moved_slices.empty());
}

TEST(Replace, LeavesExactlyTheNewStateAndNamesTheDifference) {
  ClusterState state;
  Delta delta;
  delta.services = {test::service("cart", "10.43.0.20"), test::service("till", "10.43.0.21"),
                    test::service("kiosk", "10.43.0.22")};
  apply(state, delta);
  ClusterState next;
  next.services[{"shop", "cart"}] = test::service("cart", "10.43.0.20");
  next.services[{"shop", "till"}] = test::service("till", "10.43.0.99");
  const ChangeSet changes = exchange(state, next);
  EXPECT_EQ((std::vector<ObjectName>{{"shop", "kiosk"}, {"shop", "till"}}), changes.services);
  EXPECT_EQ(2U, state.services.size());
  EXPECT_EQ(2U, state.version);
}

/// Large states are compared in parts, whichever of the two is the larger.
TEST(Replace, FindsTheSameInLargeStates) {
  const auto name = [](int i) { return ObjectName{"shop", "s" + std::to_string(i)}; };
  ClusterState many;
  ClusterState few;
  for (int i = 0; i < 5000; ++i) {
    many.services[name(i)].name = name(i);
    if (i % 1000 == 1) {
      few.services[name(i)].name = name(i);
    }
  }
  ClusterState state;
  ClusterState next = many;
  EXPECT_EQ(5000U, exchange(state, next).services.size());
  next = few;
  const ChangeSet fewer = exchange(state, next);
  EXPECT_EQ(4995U, fewer.services.size());
  EXPECT_TRUE(std::is_sorted(fewer.services.begin(), fewer.services.end()));
  EXPECT_EQ(few.services, state.services);
  next = many;
  EXPECT_EQ(fewer.services, exchange(state, next).services);
}

TEST(Replace, ByAnEqualStateIsNoChange) {
  ClusterState state;
  Delta delta;
  delta.services = {test::service("cart", "10.43.0.20")};
  apply(state, delta);
  ClusterState same = state;
  EXPECT_TRUE(exchange(state, same).empty());
  EXPECT_EQ(1U, state.version);
}

}  // namespace
}  // namespace sluice::model
