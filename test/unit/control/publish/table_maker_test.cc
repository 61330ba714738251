#include "control/publish/table_maker.h"

#include <gmock/gmock.h>

#include "test/support/cluster_objects.h"
#include "test/unit/control/publish/odd_compiler.h"

namespace sluice::publish {
namespace {

using test::make_service;
using test::make_slice;
using test::make_state;
using test::upsert;
using testing::IsEmpty;

class TableMakerTest : public testing::Test {
 protected:
  TableMakerTest() {
    use([](const model::ClusterState&) { return false; });
  }
  void use(OddCompiler::IsOdd odd) {
    auto compiler = std::make_unique<OddCompiler>(ids_, std::move(odd));
    compiler_ = compiler.get();
    maker_.emplace(std::move(compiler), compile::NodeConfig{});
  }
  static bool serves(const core::TablePtr& table, const char* address, std::uint16_t port) {
    return table->find_frontend({*core::parse_address(address), port, core::Protocol::kTcp, false})
        .has_value();
  }
  model::ClusterState two() const {
    return make_state({make_service("a", "10.96.0.1"), make_service("b", "10.96.0.2")},
                      {make_slice("a", "1", {"10.1.0.1"}), make_slice("b", "1", {"10.1.0.2"})});
  }
  compile::IdRegistry ids_{{}};
  OddCompiler* compiler_ = nullptr;
  std::optional<TableMaker> maker_;
};

TEST_F(TableMakerTest, CompilesWhatChanged) {
  maker_->replace(two());
  const auto table = maker_->make();
  ASSERT_NE(table, nullptr);
  EXPECT_TRUE(serves(table, "10.96.0.1", 80));
  EXPECT_FALSE(maker_->pending());
}

TEST_F(TableMakerTest, AnEqualStateIsNoChange) {
  maker_->replace(two());
  (void)maker_->make();
  EXPECT_TRUE(maker_->replace(two())->empty());
  EXPECT_FALSE(maker_->pending());
}

// F61
TEST_F(TableMakerTest, AnObjectThatThrowsKeepsItsFormerValueAndHoldsUpNoOther) {
  use(service_with_port("a", 81));
  maker_->replace(two());
  (void)maker_->make();

  maker_->apply(upsert({make_service("a", "10.96.0.1", 81), make_service("c", "10.96.0.3")}));
  const auto table = maker_->make();

  ASSERT_NE(table, nullptr);
  EXPECT_TRUE(serves(table, "10.96.0.1", 80));
  EXPECT_FALSE(serves(table, "10.96.0.1", 81));
  EXPECT_TRUE(serves(table, "10.96.0.3", 80));
  ASSERT_EQ(maker_->failed().size(), 1u);
  EXPECT_EQ(maker_->failed()[0].object, "service default/a");
  EXPECT_EQ(maker_->failed()[0].reason, "odd object");
  EXPECT_GT(maker_->failures(), 0u);
}

// F61
TEST_F(TableMakerTest, LaterChangesOfOthersGoOnWhileOneFails) {
  use(service_with_port("a", 81));
  maker_->replace(two());
  (void)maker_->make();
  maker_->apply(upsert({make_service("a", "10.96.0.1", 81)}));
  (void)maker_->make();

  maker_->apply(upsert({make_service("b", "10.96.0.2", 90)}));
  const auto table = maker_->make();

  ASSERT_NE(table, nullptr);
  EXPECT_TRUE(serves(table, "10.96.0.2", 90));
  EXPECT_TRUE(serves(table, "10.96.0.1", 80));
}

// F61
TEST_F(TableMakerTest, AFailedObjectGetsWellByItsNextValue) {
  use(service_with_port("a", 81));
  maker_->replace(two());
  (void)maker_->make();
  maker_->apply(upsert({make_service("a", "10.96.0.1", 81)}));
  (void)maker_->make();

  maker_->apply(upsert({make_service("a", "10.96.0.1", 82)}));
  const auto table = maker_->make();

  EXPECT_THAT(maker_->failed(), IsEmpty());
  EXPECT_TRUE(serves(table, "10.96.0.1", 82));
}

// F61
TEST_F(TableMakerTest, AFailedObjectIsTriedAgainWithoutAChange) {
  bool odd = true;
  use([&](const model::ClusterState& state) { return odd && service_with_port("a", 81)(state); });
  maker_->replace(two());
  (void)maker_->make();
  maker_->apply(upsert({make_service("a", "10.96.0.1", 81)}));
  (void)maker_->make();
  EXPECT_EQ(maker_->retry_failed(), nullptr);

  odd = false;
  const auto table = maker_->retry_failed();

  ASSERT_NE(table, nullptr);
  EXPECT_TRUE(serves(table, "10.96.0.1", 81));
  EXPECT_THAT(maker_->failed(), IsEmpty());
}

// F61
TEST_F(TableMakerTest, FindsOneBadObjectAmongManyWithFewTries) {
  use(service_with_port("s700", 81));
  std::vector<model::Service> services;
  for (unsigned i = 0; i < 1000; ++i) {
    services.push_back(
        make_service("s" + std::to_string(i),
                     "10.96." + std::to_string(1 + i / 250) + "." + std::to_string(1 + i % 250),
                     i == 700 ? 81 : 80));
  }
  maker_->replace(make_state(services, {}));
  const auto table = maker_->make();
  ASSERT_NE(table, nullptr);
  ASSERT_EQ(maker_->failed().size(), 1u);
  EXPECT_EQ(maker_->failed()[0].object, "service default/s700");
  EXPECT_LT(compiler_->calls, 40);
}

TEST_F(TableMakerTest, WhenNothingCompilesAllStaysPending) {
  bool broken = false;
  use([&](const model::ClusterState&) { return broken; });
  maker_->replace(two());
  (void)maker_->make();
  broken = true;
  maker_->apply(upsert({make_service("c", "10.96.0.3")}));
  EXPECT_EQ(maker_->make(), nullptr);
  EXPECT_TRUE(maker_->pending());
  EXPECT_EQ(maker_->last_reason(), "odd object");

  broken = false;
  const auto table = maker_->make();

  ASSERT_NE(table, nullptr);
  EXPECT_TRUE(serves(table, "10.96.0.3", 80));
  EXPECT_THAT(maker_->failed(), IsEmpty());
}

// F60: what is in the end does not depend on the order and the size of the changes.
TEST_F(TableMakerTest, ChangesOneByOneMeanWhatTheWholeStateMeans) {
  std::vector<model::Service> services;
  std::vector<model::EndpointSlice> slices;
  for (unsigned i = 0; i < 50; ++i) {
    const auto name = "s" + std::to_string(i);
    services.push_back(make_service(name, "10.96.1." + std::to_string(i + 1)));
    slices.push_back(make_slice(name, "1", {test::endpoint_address(2 * i)}));
    slices.push_back(make_slice(name, "2", {test::endpoint_address(2 * i + 1)}));
  }
  for (const auto& slice : slices) {  // slices before their Services
    maker_->apply(upsert({}, {slice}));
    (void)maker_->make();
  }
  core::TablePtr table;
  for (const auto& service : services) {
    maker_->apply(upsert({service}));
    table = maker_->make();
  }
  std::size_t endpoints = 0;
  for (std::uint32_t i = 0; i < table->slot_limit(); ++i) {
    const auto* block = table->service(static_cast<core::ServiceSlot>(i));
    endpoints += block == nullptr ? 0 : block->endpoints.size();
  }
  EXPECT_EQ(table->service_count(), 50u);
  EXPECT_EQ(endpoints, 100u);
}

}  // namespace
}  // namespace sluice::publish
