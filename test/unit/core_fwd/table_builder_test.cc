#include "dataplane/core/fwd/table_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dataplane/core/fwd/diff.h"
#include "dataplane/core/fwd/text.h"
#include "test/unit/core_fwd/table_fixture.h"

namespace sluice::core {
namespace {

TablePtr two_services() {
  TableBuilder builder(nullptr);
  add(builder, 0, block("shop/a", "10.43.0.1", {endpoint("10.42.1.1", 0)}));
  add(builder, 300, block("shop/b", "10.43.0.2", {endpoint("10.42.1.2", 1)}));
  return frozen(builder);
}

TEST(TableBuilder, FindsWhatWasPutIn) {
  const TablePtr table = two_services();
  ASSERT_NE(nullptr, table);
  EXPECT_EQ(2U, table->service_count());
  EXPECT_EQ(2U, table->frontend_count());
  const auto found = table->find_frontend({ip("10.43.0.2"), 80});
  ASSERT_TRUE(found);
  EXPECT_EQ(ServiceSlot{300}, found->slot);
  EXPECT_FALSE(table->find_frontend({ip("10.43.0.2"), 81}));
  EXPECT_EQ(nullptr, table->service(ServiceSlot{5}));
  EXPECT_EQ(nullptr, table->service(ServiceSlot::kNone));
}

// F27: the protocol is part of the key.
TEST(TableBuilder, FrontendsOfTwoProtocolsAreTwo) {
  TableBuilder builder(nullptr);
  auto udp = block("shop/dns:udp", "10.43.0.1", {});
  udp.protocol = Protocol::kUdp;
  add(builder, 0, block("shop/dns:tcp", "10.43.0.1", {}));
  add(builder, 1, udp);
  const TablePtr table = frozen(builder);
  ASSERT_NE(nullptr, table);
  EXPECT_EQ(ServiceSlot{0}, table->find_frontend({ip("10.43.0.1"), 80, Protocol::kTcp})->slot);
  EXPECT_EQ(ServiceSlot{1}, table->find_frontend({ip("10.43.0.1"), 80, Protocol::kUdp})->slot);
}

TEST(TableBuilder, SharesWhatDidNotChange) {
  const TablePtr before = two_services();
  TableBuilder builder(before);
  builder.set_service(ServiceSlot{0}, block("shop/a", "10.43.0.1", {endpoint("10.42.1.9", 2)}));
  const TablePtr after = frozen(builder);
  EXPECT_NE(before->page(0), after->page(0));
  EXPECT_EQ(before->page(1), after->page(1));
  for (std::size_t i = 0; i < ForwardingTable::kShards; ++i) {
    EXPECT_EQ(before->shard(i), after->shard(i));
  }
  // The old table is what it was.
  EXPECT_EQ(ip("10.42.1.1"), before->service(ServiceSlot{0})->endpoints[0].address);
}

TEST(TableBuilder, AnEqualBlockIsNoChange) {
  const TablePtr before = two_services();
  TableBuilder builder(before);
  builder.set_service(ServiceSlot{0}, block("shop/a", "10.43.0.1", {endpoint("10.42.1.1", 0)}));
  const TablePtr after = frozen(builder);
  EXPECT_EQ(before->page(0), after->page(0));
  EXPECT_TRUE(diff(*before, *after).empty());
  EXPECT_EQ(before->generation() + 1, after->generation());
}

TEST(TableBuilder, TheLastWordOnASlotOrFrontendHolds) {
  const TablePtr before = two_services();
  TableBuilder builder(before);
  builder.set_service(ServiceSlot{300}, block("shop/b", "10.43.0.2", {endpoint("10.42.1.9", 2)}));
  builder.remove_service(ServiceSlot{0});
  builder.set_service(ServiceSlot{0}, block("shop/a", "10.43.0.1", {endpoint("10.42.1.8", 3)}));
  builder.remove_frontend({ip("10.43.0.1"), 80});
  builder.set_frontend({ip("10.43.0.1"), 80}, {ServiceSlot{0}, FrontendKind::kClusterIp});
  const TablePtr after = frozen(builder);
  ASSERT_NE(nullptr, after);
  EXPECT_EQ(2U, after->service_count());
  EXPECT_EQ(2U, after->frontend_count());
  EXPECT_EQ(ip("10.42.1.8"), after->service(ServiceSlot{0})->endpoints[0].address);
  EXPECT_EQ(ip("10.42.1.9"), after->service(ServiceSlot{300})->endpoints[0].address);
  EXPECT_TRUE(check_table(*after));
}

TEST(TableBuilder, WhatIsPutBackIsNoChange) {
  const TablePtr before = two_services();
  TableBuilder builder(before);
  builder.remove_service(ServiceSlot{0});
  builder.set_service(ServiceSlot{0}, block("shop/a", "10.43.0.1", {endpoint("10.42.1.1", 0)}));
  builder.remove_frontend({ip("10.43.0.1"), 80});
  builder.set_frontend({ip("10.43.0.1"), 80}, {ServiceSlot{0}, FrontendKind::kClusterIp});
  builder.set_service(ServiceSlot{7}, block("shop/c", "10.43.0.3", {}));
  builder.remove_service(ServiceSlot{7});
  const TablePtr after = frozen(builder);
  ASSERT_NE(nullptr, after);
  EXPECT_EQ(before->page(0), after->page(0));
  EXPECT_EQ(before->epoch(), after->epoch());
  for (std::size_t i = 0; i < ForwardingTable::kShards; ++i) {
    EXPECT_EQ(before->shard(i), after->shard(i));
  }
}

// A table of Maglev slots is made again for the Service whose endpoints, weights or scheduler
// changed, and for nothing else.
TEST(TableBuilder, AChangeMakesThePlanOfItsOwnServiceAnew) {
  const auto hashed = [](const char* name, const char* address, const char* backend) {
    ServicePort b = block(name, address, {endpoint(backend, 0)});
    b.scheduler = SchedulerKind::kMh;
    return b;
  };
  TableBuilder first(nullptr);
  add(first, 0, hashed("shop/a", "10.43.0.1", "10.42.1.1"));
  add(first, 1, hashed("shop/b", "10.43.0.2", "10.42.1.2"));
  const TablePtr before = frozen(first);
  const auto plan = [](const TablePtr& table, std::uint32_t slot) {
    return table->service(ServiceSlot{slot})->cluster_plan.plan.get();
  };
  ASSERT_NE(plan(before, 0), nullptr);

  TableBuilder second(before);
  second.set_service(ServiceSlot{0}, hashed("shop/a", "10.43.0.1", "10.42.1.9"));
  ServicePort pinned = hashed("shop/b", "10.43.0.2", "10.42.1.2");
  pinned.affinity_seconds = 60;
  second.set_service(ServiceSlot{1}, pinned);
  const TablePtr after = frozen(second);
  EXPECT_NE(plan(after, 0), plan(before, 0));
  EXPECT_EQ(plan(after, 1), plan(before, 1));
  EXPECT_EQ(after->service(ServiceSlot{1})->affinity_seconds, 60U);

  TableBuilder third(after);
  ServicePort heavier = pinned;
  heavier.endpoints[0].weight = 2;
  third.set_service(ServiceSlot{1}, heavier);
  ServicePort in_turn = hashed("shop/a", "10.43.0.1", "10.42.1.9");
  in_turn.scheduler = SchedulerKind::kRr;
  third.set_service(ServiceSlot{0}, in_turn);
  const TablePtr last = frozen(third);
  EXPECT_NE(plan(last, 1), plan(after, 1));
  EXPECT_EQ(plan(last, 0), nullptr);
}

TEST(TableBuilder, EpochGrowsWhenADestinationLeavesAndOnlyThen) {
  const TablePtr first = two_services();
  TableBuilder more(first);
  more.set_service(ServiceSlot{0}, block("shop/a", "10.43.0.1",
                                         {endpoint("10.42.1.1", 0), endpoint("10.42.1.3", 3)}));
  const TablePtr second = frozen(more);
  EXPECT_EQ(first->epoch(), second->epoch());
  TableBuilder fewer(second);
  fewer.set_service(ServiceSlot{0}, block("shop/a", "10.43.0.1", {endpoint("10.42.1.3", 3)}));
  const TablePtr third = frozen(fewer);
  EXPECT_EQ(second->epoch() + 1, third->epoch());
  TableBuilder gone(third);
  gone.remove_service(ServiceSlot{0});
  gone.remove_frontend({ip("10.43.0.1"), 80});
  EXPECT_EQ(third->epoch() + 1, frozen(gone)->epoch());
}

// CT-2: a UDP backend that stops serving ends its flows; TCP keeps them (M-8).
TEST(TableBuilder, EpochGrowsForUdpWhenAnEndpointStopsServing) {
  for (const Protocol protocol : {Protocol::kTcp, Protocol::kUdp}) {
    auto b = block("shop/a", "10.43.0.1", {endpoint("10.42.1.1", 0)});
    b.protocol = protocol;
    TableBuilder builder(nullptr);
    add(builder, 0, b);
    const TablePtr before = frozen(builder);
    b.endpoints[0].serving = false;
    TableBuilder next(before);
    next.set_service(ServiceSlot{0}, b);
    EXPECT_EQ(before->epoch() + (protocol == Protocol::kUdp ? 1U : 0U), frozen(next)->epoch());
  }
}

TEST(TableBuilder, ViolatedInvariantMakesNoTable) {
  const TablePtr before = two_services();
  TableBuilder builder(before);
  builder.remove_service(ServiceSlot{0});  // its frontend is left behind
  const auto table = builder.freeze();
  ASSERT_FALSE(table);
  EXPECT_THAT(table.error().message, testing::HasSubstr("10.43.0.1:80"));
  EXPECT_TRUE(check_table(*before));
}

TEST(TableBuilder, ManyFrontendsComeAndGo) {
  TablePtr table = std::make_shared<const ForwardingTable>();
  TableBuilder in(table);
  constexpr std::uint32_t kCount = 3000;
  const auto address = [](std::uint32_t i) {
    return "10.43." + std::to_string(i / 250) + "." + std::to_string(i % 250 + 1);
  };
  for (std::uint32_t i = 0; i < kCount; ++i) {
    add(in, i, block("s/" + std::to_string(i), address(i), {}));
  }
  table = frozen(in);
  ASSERT_NE(nullptr, table);
  EXPECT_TRUE(check_table(*table));
  TableBuilder out(table);
  for (std::uint32_t i = 0; i < kCount; i += 2) {
    out.remove_service(ServiceSlot{i});
    out.remove_frontend({ip(address(i)), 80});
  }
  table = frozen(out);
  ASSERT_NE(nullptr, table);
  EXPECT_TRUE(check_table(*table));
  EXPECT_EQ(kCount / 2, table->frontend_count());
  EXPECT_FALSE(table->find_frontend({ip(address(0)), 80}));
  EXPECT_TRUE(table->find_frontend({ip(address(1)), 80}));
}

TEST(FindEndpoint, FindsByAddressAndPortInAnyOrderOfIdentities) {
  TableBuilder builder(nullptr);
  add(builder, 0,
      block("shop/a", "10.43.0.1",
            {endpoint("10.42.1.10", 0), endpoint("10.42.1.2", 1), endpoint("10.42.1.9", 2)}));
  const TablePtr table = frozen(builder);
  const ServicePort& b = *table->service(ServiceSlot{0});
  EXPECT_EQ(EndpointId{1}, b.find_endpoint(ip("10.42.1.2"), 8080)->id);
  EXPECT_EQ(EndpointId{0}, b.find_endpoint(ip("10.42.1.10"), 8080)->id);
  EXPECT_EQ(nullptr, b.find_endpoint(ip("10.42.1.2"), 80));
  EXPECT_EQ(nullptr, b.find_endpoint(ip("10.42.1.3"), 8080));
  const ServicePort unindexed = block("shop/a", "10.43.0.1", {endpoint("10.42.1.10", 0)});
  EXPECT_NE(nullptr, unindexed.find_endpoint(ip("10.42.1.10"), 8080));
}

TEST(Diff, NamesWhatChanged) {
  const TablePtr before = two_services();
  TableBuilder builder(before);
  builder.set_service(ServiceSlot{0}, block("shop/a", "10.43.0.1", {endpoint("10.42.1.9", 2)}));
  builder.remove_service(ServiceSlot{300});
  builder.remove_frontend({ip("10.43.0.2"), 80});
  add(builder, 7, block("shop/c", "10.43.0.3", {}));
  const TablePtr after = frozen(builder);
  ASSERT_NE(nullptr, after);
  const TableDiff d = diff(*before, *after);
  EXPECT_THAT(d.added, testing::ElementsAre(ServiceSlot{7}));
  EXPECT_THAT(d.changed, testing::ElementsAre(ServiceSlot{0}));
  EXPECT_THAT(d.removed, testing::ElementsAre(ServiceSlot{300}));
  EXPECT_THAT(d.frontends_added, testing::ElementsAre(FrontendKey{ip("10.43.0.3"), 80}));
  EXPECT_THAT(d.frontends_removed, testing::ElementsAre(FrontendKey{ip("10.43.0.2"), 80}));
  ASSERT_EQ(2U, d.departed.size());
  EXPECT_EQ(EndpointId{0}, d.departed[0].id);
  EXPECT_FALSE(d.departed[0].service_left);
  EXPECT_TRUE(d.departed[1].service_left);
  EXPECT_FALSE(d.node_changed);
}

TEST(Text, IsStableAndHasNoIdsUnlessAsked) {
  TableBuilder one(nullptr);
  add(one, 0, block("shop/a", "10.43.0.1", {endpoint("10.42.1.1", 0)}));
  TableBuilder other(nullptr);
  add(other, 9, block("shop/a", "10.43.0.1", {endpoint("10.42.1.1", 77)}));
  const TablePtr a = frozen(one);
  const TablePtr b = frozen(other);
  EXPECT_EQ(to_text(*a), to_text(*b));
  EXPECT_NE(to_text(*a, {true}), to_text(*b, {true}));
  EXPECT_THAT(to_text(*a), testing::HasSubstr("frontend 10.43.0.1:80 tcp cluster-ip -> shop/a"));
}

}  // namespace
}  // namespace sluice::core
