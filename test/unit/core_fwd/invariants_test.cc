#include "dataplane/core/fwd/invariants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "test/unit/core_fwd/table_fixture.h"

namespace sluice::core {
namespace {

ServicePort good() {
  return block("shop/a", "10.43.0.1", {endpoint("10.42.1.1", 0, true), endpoint("10.42.1.2", 1)});
}

TEST(Invariants, GoodBlockHolds) {
  EXPECT_TRUE(check_block(good()));
}

TEST(Invariants, EachBrokenRuleOfABlockIsFound) {
  const std::vector<std::pair<const char*, std::function<void(ServicePort&)>>> breaks = {
      {"no name", [](ServicePort& b) { b.name.clear(); }},
      {"port 0", [](ServicePort& b) { b.port = 0; }},
      {"other family", [](ServicePort& b) { b.external_ips = {ip("2001:db8::1")}; }},
      {"endpoint of the other family",
       [](ServicePort& b) { b.endpoints[0].address = ip("fd42::1"); }},
      {"endpoint port 0", [](ServicePort& b) { b.endpoints[0].port = 0; }},
      {"unsorted list", [](ServicePort& b) { std::swap(b.cluster[0], b.cluster[1]); }},
      {"index out of range", [](ServicePort& b) { b.cluster.push_back(EndpointIndex{2}); }},
      {"weight 0 in a list", [](ServicePort& b) { b.endpoints[1].weight = 0; }},
      {"two of one identity",
       [](ServicePort& b) { b.endpoints[1].address = b.endpoints[0].address; }},
      {"remote in the local list", [](ServicePort& b) { b.local.push_back(EndpointIndex{1}); }},
      {"hasInternal wrong", [](ServicePort& b) { b.has_internal = false; }},
      {"hasExternal wrong", [](ServicePort& b) { b.has_external = false; }},
      {"hasAny without cluster list",
       [](ServicePort& b) {
         b.externally_accessible = true;
         b.cluster.clear();
       }},
  };
  for (const auto& [what, break_it] : breaks) {
    ServicePort b = good();
    break_it(b);
    EXPECT_FALSE(check_block(b)) << what;
  }
}

TEST(Invariants, NodePartIsSortedAndOfItsFamily) {
  NodePart node;
  EXPECT_TRUE(check_node(node));
  node.v4.active_cluster_ips = {ip("10.43.0.2"), ip("10.43.0.1")};
  EXPECT_FALSE(check_node(node));
  node.v4.active_cluster_ips = {ip("fd43::1")};
  EXPECT_FALSE(check_node(node));
  node.v4.active_cluster_ips.clear();
  node.snat_first_port = 2;
  node.snat_last_port = 1;
  EXPECT_FALSE(check_node(node));
}

TEST(Invariants, FrontendMustBeClaimedByItsBlock) {
  TableBuilder builder(nullptr);
  add(builder, 0, good());
  builder.set_frontend({ip("203.0.113.1"), 80}, {ServiceSlot{0}, FrontendKind::kExternalIp});
  EXPECT_FALSE(builder.freeze());
}

TEST(Invariants, ClaimedAddressMustBeInTheIndex) {
  TableBuilder builder(nullptr);
  builder.set_service(ServiceSlot{0}, good());
  EXPECT_FALSE(builder.freeze());
}

TEST(Invariants, LoserOfAFrontendIsNoViolation) {
  TableBuilder builder(nullptr);
  auto loser = good();
  loser.name = "shop/b";
  builder.set_service(ServiceSlot{1}, loser);
  add(builder, 0, good());
  EXPECT_TRUE(builder.freeze());
}

}  // namespace
}  // namespace sluice::core
