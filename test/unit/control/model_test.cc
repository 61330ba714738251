#include "control/model/model.h"

#include <gtest/gtest.h>

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
