// Contested frontends (24.5): who wins, and that the loser is named.
#include "control/compile/frontends.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/small_cluster.h"

namespace sluice::compile {
namespace {

using core::FlowVerdict;
using test::eligible;
using test::SmallCluster;
using testing::ElementsAre;
using testing::IsEmpty;

model::Service claimant(const std::string& name, const std::string& cluster_ip,
                        std::optional<std::int64_t> created) {
  auto s = test::service(name, cluster_ip);
  s.external_ips = {"203.0.113.99"};
  s.creation_unix_seconds = created;
  return s;
}

TEST(Frontends, OlderServiceWins) {
  SmallCluster c;
  c.put(claimant("young", "10.43.0.1", 200));
  c.put(claimant("old", "10.43.0.2", 100));
  c.put(test::slice("young", {"10.42.1.1"}));
  c.put(test::slice("old", {"10.42.1.2"}));
  c.compile();
  EXPECT_THAT(eligible(c.decide("198.51.100.7", "203.0.113.99", 80)),
              ElementsAre("10.42.1.2:8080"));
  EXPECT_THAT(c.lines("service shop/young"),
              ElementsAre("spec.externalIPs: 203.0.113.99:80/tcp belongs to service shop/old"));
  EXPECT_THAT(c.lines("service shop/old"), IsEmpty());
}

TEST(Frontends, AbsentTimestampIsNewestAndNamesBreakTies) {
  SmallCluster c;
  c.put(claimant("a", "10.43.0.1", std::nullopt));
  c.put(claimant("c", "10.43.0.2", 100));
  c.put(claimant("b", "10.43.0.3", 100));
  for (const char* name : {"a", "b", "c"}) {
    c.put(test::slice(name, {std::string("10.42.1.") + std::to_string(name[0])}));
  }
  c.compile();
  EXPECT_EQ("shop/b", c.decide("198.51.100.7", "203.0.113.99", 80).service->name);
}

TEST(Frontends, ServiceWithEndpointsBeatsAnOlderEmptyOne) {
  SmallCluster c;
  c.put(claimant("old", "10.43.0.1", 100));
  c.put(claimant("young", "10.43.0.2", 200));
  c.put(test::slice("young", {"10.42.1.2"}));
  c.compile();
  EXPECT_EQ("shop/young", c.decide("198.51.100.7", "203.0.113.99", 80).service->name);
}

TEST(Frontends, IfAllAreEmptyTheOldestRefuses) {
  SmallCluster c;
  c.put(claimant("young", "10.43.0.2", 200));
  c.put(claimant("old", "10.43.0.1", 100));
  c.compile();
  const auto d = c.decide("198.51.100.7", "203.0.113.99", 80);
  EXPECT_EQ(FlowVerdict::kReject, d.verdict);
  EXPECT_EQ("shop/old", d.service->name);
}

TEST(Frontends, VipOfAServiceBeatsItsOwnEqualExternalIp) {  // so that P-1 holds
  SmallCluster c;
  auto s = claimant("cart", "10.43.0.1", 100);
  s.load_balancer_ingress.push_back({"203.0.113.99", "", std::nullopt});
  s.load_balancer_source_ranges = {"198.51.100.0/24"};
  c.put(s);
  c.put(test::slice("cart", {"10.42.1.1"}));
  c.compile();
  EXPECT_EQ(FlowVerdict::kForward, c.decide("198.51.100.7", "203.0.113.99", 80).verdict);
  EXPECT_EQ(FlowVerdict::kDrop, c.decide("198.51.101.7", "203.0.113.99", 80).verdict);
  EXPECT_THAT(c.lines("service shop/cart"), IsEmpty());
}

TEST(Frontends, LoserTakesOverWhenTheWinnerLeaves) {
  model::ClusterState state;
  SmallCluster node;
  IdRegistry ids({});
  Compiler compiler(Profile::kNftables, ids);
  model::Delta both;
  both.services = {claimant("old", "10.43.0.1", 100), claimant("young", "10.43.0.2", 200)};
  both.slices = {test::slice("old", {"10.42.1.1"}), test::slice("young", {"10.42.1.2"})};
  (void)compiler.update(state, model::apply(state, both), node.config, node.host);
  model::Delta gone;
  gone.deleted_services = {{"shop", "old"}};
  const auto after = compiler.update(state, model::apply(state, gone), node.config, node.host);
  ASSERT_TRUE(after);
  const auto found = after->table->find_frontend({test::ip("203.0.113.99"), 80});
  ASSERT_TRUE(found);
  EXPECT_EQ("shop/young", after->table->service(found->slot)->name);
  EXPECT_THAT(after->report.lines, IsEmpty());
}

}  // namespace
}  // namespace sluice::compile
