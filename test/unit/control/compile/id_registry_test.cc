#include "control/compile/id_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/small_cluster.h"

namespace sluice::compile {
namespace {

using core::EndpointId;
using core::ServiceSlot;

ServicePortKey key(const std::string& name) {
  return {{"shop", name}, "", core::Protocol::kTcp, core::Family::kIpv4};
}
EndpointAddress at(const std::string& address) {
  return {test::ip(address), 80};
}
const auto kIdle = [](EndpointId) { return false; };
const auto kBusy = [](EndpointId) { return true; };

TEST(IdRegistry, IdsAreDenseAndStable) {
  IdRegistry ids({4, 8});
  const auto slot = *ids.acquire_slot(key("a"));
  EXPECT_EQ(ServiceSlot{0}, slot);
  EXPECT_EQ(ServiceSlot{1}, *ids.acquire_slot(key("b")));
  EXPECT_EQ(slot, *ids.acquire_slot(key("a")));
  const auto first = ids.acquire_endpoints(slot, {at("10.0.0.2"), at("10.0.0.1")});
  EXPECT_THAT(first, testing::ElementsAre(EndpointId{0}, EndpointId{1}));
  EXPECT_THAT(ids.acquire_endpoints(slot, {at("10.0.0.1"), at("10.0.0.3"), at("10.0.0.2")}),
              testing::ElementsAre(EndpointId{1}, EndpointId{2}, EndpointId{0}));
}

TEST(IdRegistry, RetiredIdsComeBackToTheSameEndpointOnly) {
  IdRegistry ids({4, 8});
  const auto slot = *ids.acquire_slot(key("a"));
  const auto id = ids.acquire_endpoints(slot, {at("10.0.0.1")})[0];
  ids.retire_endpoint(id, 5);
  EXPECT_NE(id, ids.acquire_endpoints(slot, {at("10.0.0.2")})[0]);
  EXPECT_EQ(id, ids.acquire_endpoints(slot, {at("10.0.0.1")})[0]);
  EXPECT_EQ(0U, ids.retired());
}

TEST(IdRegistry, NothingIsFreedWhileAWorkerOrAConnectionMayUseIt) {
  IdRegistry ids({4, 8});
  const auto slot = *ids.acquire_slot(key("a"));
  const auto id = ids.acquire_endpoints(slot, {at("10.0.0.1")})[0];
  ids.retire_endpoint(id, 5);
  ids.retire_slot(slot, 5);
  EXPECT_EQ(0U, ids.release_unused(4, kIdle));  // a worker still reads generation 4
  EXPECT_EQ(0U, ids.release_unused(5, kBusy));  // a connection lives
  EXPECT_EQ(2U, ids.release_unused(5, kIdle));
  EXPECT_EQ(0U, ids.endpoints_in_use());
  EXPECT_EQ(0U, ids.slots_in_use());
}

// F63: at the limit that object alone is refused; it works once space is free.
TEST(IdRegistry, LimitRefusesAndFreeSpaceServesAgain) {
  IdRegistry ids({1, 1});
  const auto slot = *ids.acquire_slot(key("a"));
  EXPECT_FALSE(ids.acquire_slot(key("b")));
  const auto got = ids.acquire_endpoints(slot, {at("10.0.0.1"), at("10.0.0.2")});
  EXPECT_EQ(EndpointId::kNone, got[1]);
  ids.retire_endpoint(got[0], 1);
  ids.release_unused(1, kIdle);
  EXPECT_EQ(EndpointId{0}, ids.acquire_endpoints(slot, {at("10.0.0.2")})[0]);
}

class LimitTest : public testing::Test {
 protected:
  Compiled update(const model::Delta& delta) {
    auto result = compiler_.update(state_, model::apply(state_, delta), node_.config, node_.host);
    EXPECT_TRUE(result) << result.error().message;
    return result ? *result : Compiled{};
  }
  test::SmallCluster node_;
  model::ClusterState state_;
  IdRegistry ids_{{2, 2}};
  Compiler compiler_{Profile::kNftables, ids_};
};

// F63 through compile: the Service over the limit is refused by name, the others go on.
TEST_F(LimitTest, ServiceOverTheLimitIsRefusedAloneAndWorksOnceThereIsRoom) {
  model::Delta three;
  three.services = {test::service("a", "10.43.0.1"), test::service("b", "10.43.0.2"),
                    test::service("c", "10.43.0.3")};
  const Compiled full = update(three);
  EXPECT_EQ(2U, full.table->service_count());
  ASSERT_EQ(1U, full.report.lines.size());
  EXPECT_EQ("service shop/c", full.report.lines[0].object);
  EXPECT_EQ("spec.ports[0]", full.report.lines[0].field);
  EXPECT_FALSE(compiler_.retry_due());

  model::Delta gone;
  gone.deleted_services = {{"shop", "a"}};
  const Compiled less = update(gone);
  EXPECT_EQ(1U, less.table->service_count());
  ids_.release_unused(less.table->generation(), kIdle);
  EXPECT_TRUE(compiler_.retry_due());
  const Compiled again = update({});
  EXPECT_EQ(2U, again.table->service_count());
  EXPECT_TRUE(again.report.lines.empty());
}

TEST_F(LimitTest, EndpointOverTheLimitIsRefusedAlone) {
  model::Delta delta;
  delta.services = {test::service("a", "10.43.0.1")};
  delta.slices = {test::slice("a", {"10.42.1.1", "10.42.1.2", "10.42.1.3"})};
  const Compiled got = update(delta);
  EXPECT_EQ(2U, got.table->service(core::ServiceSlot{0})->cluster.size());
  EXPECT_EQ(1U, got.report.lines.size());
}

// F63: churn leaks nothing.
TEST_F(LimitTest, IdsInUseAfterChurnAreThoseAtTheStart) {
  for (int i = 0; i < 20000; ++i) {
    const std::string name = "s" + std::to_string(i);
    model::Delta come;
    come.services = {test::service(name, "10.43.0.1")};
    come.slices = {test::slice(name, {"10.42.1." + std::to_string(i % 250)})};
    EXPECT_TRUE(update(come).report.lines.empty());
    model::Delta go;
    go.deleted_services = {{"shop", name}};
    go.deleted_slices = {{"shop", name + "-a"}};
    ids_.release_unused(update(go).table->generation(), kIdle);
    ASSERT_FALSE(HasFailure()) << i;
  }
  EXPECT_EQ(0U, ids_.slots_in_use());
  EXPECT_EQ(0U, ids_.endpoints_in_use());
}

}  // namespace
}  // namespace sluice::compile
