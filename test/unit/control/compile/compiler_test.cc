#include "control/compile/compiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dataplane/core/fwd/invariants.h"
#include "test/support/small_cluster.h"

namespace sluice::compile {
namespace {

using core::FlowVerdict;
using test::SmallCluster;
using testing::ElementsAre;

class CompilerTest : public testing::Test {
 protected:
  core::TablePtr update(const model::Delta& delta) {
    auto result = compiler_.update(state_, model::apply(state_, delta), node_.config, node_.host);
    EXPECT_TRUE(result) << result.error().message;
    last_ = result ? *result : Compiled{};
    return last_.table;
  }
  core::TablePtr put(const model::Service& s) {
    model::Delta d;
    d.services = {s};
    return update(d);
  }
  core::TablePtr put(const model::EndpointSlice& s) {
    model::Delta d;
    d.slices = {s};
    return update(d);
  }
  static const core::ServicePort& at(const core::TablePtr& table, std::uint32_t slot) {
    return *table->service(core::ServiceSlot{slot});
  }
  SmallCluster node_;
  model::ClusterState state_;
  IdRegistry ids_{{}};
  Compiler compiler_{Profile::kNftables, ids_};
  Compiled last_;
};

TEST_F(CompilerTest, EndpointChangeSharesEveryOtherBlock) {
  put(test::service("a", "10.43.0.1"));
  const auto before = put(test::service("b", "10.43.0.2"));
  const auto after = put(test::slice("a", {"10.42.1.1"}));
  EXPECT_NE(before->service(core::ServiceSlot{0}), after->service(core::ServiceSlot{0}));
  EXPECT_EQ(before->service(core::ServiceSlot{1}), after->service(core::ServiceSlot{1}));
  EXPECT_EQ(before->node_ptr(), after->node_ptr());
}

TEST_F(CompilerTest, GenerationGrowsWithEveryTable) {
  const auto first = put(test::service("a", "10.43.0.1"));
  const auto second = put(test::slice("a", {"10.42.1.1"}));
  EXPECT_EQ(first->generation() + 1, second->generation());
}

TEST_F(CompilerTest, FullOfTheSameStateChangesNoBlock) {
  put(test::service("a", "10.43.0.1"));
  const auto before = put(test::slice("a", {"10.42.1.1"}));
  const auto again = compiler_.full(state_, node_.config, node_.host);
  ASSERT_TRUE(again);
  EXPECT_EQ(before->service(core::ServiceSlot{0}), again->table->service(core::ServiceSlot{0}));
  EXPECT_EQ(before->epoch(), again->table->epoch());
}

TEST_F(CompilerTest, FullOnTopOfAForeignTableRemovesWhatIsGone) {
  SmallCluster other;
  other.put(test::service("x", "10.43.0.77"));
  other.put(test::service("y", "10.43.0.78"));
  other.compile();
  SmallCluster mine;
  mine.put(test::service("x", "10.43.0.79"));
  IdRegistry ids({});
  const auto got = compile_full(mine.state, mine.config, mine.host, Profile::kNftables, ids,
                                other.compiled.table);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(1U, got->table->service_count());
  EXPECT_EQ(1U, got->table->frontend_count());
  EXPECT_TRUE(core::check_table(*got->table));
}

// F62: one backend of two Services stays with the other one.
TEST_F(CompilerTest, SharedBackendOutlivesOneOfItsServices) {
  put(test::service("a", "10.43.0.1"));
  put(test::service("b", "10.43.0.2"));
  put(test::slice("a", {"10.42.1.1"}));
  const auto before = put(test::slice("b", {"10.42.1.1"}));
  const core::EndpointId id = at(before, 1).endpoints[0].id;
  model::Delta gone;
  gone.deleted_services = {{"shop", "a"}};
  const auto after = update(gone);
  EXPECT_EQ(id, at(after, 1).endpoints.at(0).id);
  EXPECT_NE(id, at(before, 0).endpoints[0].id);
}

// F60: many Services at once, in one delta or one by one, come to the same.
TEST_F(CompilerTest, BurstOfServicesLosesNoEndpoint) {
  model::Delta burst;
  for (int i = 0; i < 500; ++i) {
    const std::string name = "s" + std::to_string(i);
    const std::string third = std::to_string(i / 250);
    const std::string fourth = std::to_string(i % 250 + 1);
    burst.services.push_back(test::service(name, "10.43." + third + "." + fourth));
    std::vector<std::string> addresses;
    for (int e = 0; e < 4; ++e) {
      addresses.push_back("10.42." + std::to_string(e * 10 + i / 250) + "." + fourth);
    }
    burst.slices.push_back(test::slice(name, addresses));
  }
  const auto table = update(burst);
  ASSERT_EQ(500U, table->service_count());
  for (std::uint32_t i = 0; i < 500; ++i) {
    EXPECT_EQ(4U, at(table, i).cluster.size());
  }
}

// F39: bad objects among good ones, every kind of fault at once.
TEST_F(CompilerTest, BadObjectsStopNoOther) {
  model::Delta delta;
  for (int i = 0; i < 100; ++i) {
    const std::string name = "good" + std::to_string(i);
    delta.services.push_back(test::service(name, "10.43.0." + std::to_string(i + 1)));
    delta.slices.push_back(test::slice(name, {"10.42.1." + std::to_string(i + 1)}));
  }
  auto bad = test::service("bad", "10.43.1.1");
  bad.external_ips = {"2001:db8::1", "::ffff:203.0.113.5", "rubbish"};
  bad.ports.push_back({"zero", "TCP", 0, 0, "", ""});
  bad.ports.push_back({"huge", "TCP", 70000, 0, "", ""});
  delta.services.push_back(bad);
  delta.services.push_back(test::service(std::string(300, 'x'), "10.43.1.2"));
  delta.services.push_back(test::service("empty", ""));
  delta.services.push_back(test::service("nonsense", "10.43.0.300"));
  auto fqdn = test::slice("bad", {"example.com"});
  fqdn.address_type = "FQDN";
  delta.slices.push_back(fqdn);
  const auto table = update(delta);
  EXPECT_EQ(101U, table->service_count());  // 100 good ones and the good port of the bad one
  EXPECT_TRUE(core::check_table(*table));
  EXPECT_GE(last_.report.lines.size(), 6U);
}

// Each kind of bad input is named with its object and field, and the Service beside it works.
TEST_F(CompilerTest, EveryFaultIsReportedWithTheNameOfItsObject) {
  model::Delta d;
  d.services = {test::service("good", "10.43.0.1"), test::service("bad", "10.43.0.2")};
  d.services[1].ports.push_back({"zero", "TCP", 0, 0, "", ""});
  d.services[1].load_balancer_source_ranges = {"10.0.0.0/99"};
  d.services[1].external_ips = {"2001:db8::1"};
  d.slices = {test::slice("good", {"10.42.1.1"}),
              test::slice("bad", {"10.42.1.2", "10.42.1.2", "2001:db8::2", "rubbish"}),
              test::slice("bad", {}, "empty"), test::slice("bad", {"10.42.1.3"}, "zero")};
  d.slices[3].ports[0].port = 0;
  const auto table = update(d);
  ASSERT_EQ(2U, table->service_count());
  EXPECT_EQ(1U, at(table, 0).cluster.size());
  EXPECT_EQ(1U, at(table, 1).cluster.size());
  const auto reported = [&](const std::string& object, const std::string& field) {
    const auto lines = last_.report.of(object);
    return std::any_of(lines.begin(), lines.end(), [&](const auto& l) { return l.field == field; });
  };
  EXPECT_TRUE(reported("service shop/bad", "spec.ports[1].port"));
  EXPECT_TRUE(reported("service shop/bad", "spec.loadBalancerSourceRanges[0]"));
  EXPECT_TRUE(reported("service shop/bad", "spec.externalIPs[0]"));
  EXPECT_TRUE(reported("endpointslice shop/bad-a", "endpoints"));  // named twice
  EXPECT_TRUE(reported("endpointslice shop/bad-a", "endpoints[2].addresses[0]"));
  EXPECT_TRUE(reported("endpointslice shop/bad-a", "endpoints[3].addresses[0]"));
  EXPECT_TRUE(reported("endpointslice shop/bad-empty", "endpoints"));
  EXPECT_TRUE(reported("endpointslice shop/bad-zero", "ports[0].port"));
  EXPECT_TRUE(last_.report.of("service shop/good").empty());
}

// A change costs what it changes, however long the lists of the cluster are.
TEST_F(CompilerTest, ReportAndHealthPortsAreHandedOnWhileTheyStay) {
  auto edge = test::service("edge", "10.43.0.1");
  edge.type = "LoadBalancer";
  edge.external_traffic_policy = "Local";
  edge.health_check_node_port = 32000;
  edge.external_ips = {"rubbish"};
  put(edge);
  const Compiled before = last_;
  ASSERT_FALSE(before.report.lines.empty());
  ASSERT_FALSE(before.health_ports.empty());
  put(test::service("other", "10.43.0.2"));
  EXPECT_TRUE(last_.report.lines.shares(before.report.lines));
  EXPECT_TRUE(last_.health_ports.shares(before.health_ports));
  edge.external_ips.clear();
  put(edge);
  EXPECT_TRUE(last_.report.lines.empty());
  EXPECT_EQ(before.health_ports, last_.health_ports);
}

TEST_F(CompilerTest, AnnouncedAreVipsAndExternalIpsInsideTheListAndNeverClusterIps) {  // F37
  node_.config.announce = {test::cidr("203.0.113.0/24"), test::cidr("10.0.0.0/8")};
  auto s = test::service("cart", "10.43.0.1");
  s.external_ips = {"203.0.113.99", "198.51.100.1"};
  s.load_balancer_ingress = {{"203.0.113.20", "", std::nullopt}};
  auto other = test::service("till", "10.43.0.2");
  other.external_ips = {"203.0.113.99"};
  put(s);
  const auto both = put(other);
  EXPECT_THAT(both->node().v4.announced,
              ElementsAre(test::ip("203.0.113.20"), test::ip("203.0.113.99")));
  model::Delta gone;
  gone.deleted_services = {{"shop", "cart"}};
  EXPECT_THAT(update(gone)->node().v4.announced, ElementsAre(test::ip("203.0.113.99")));
  gone.deleted_services = {{"shop", "till"}};
  EXPECT_TRUE(update(gone)->node().v4.announced.empty());
}

TEST_F(CompilerTest, ZoneOfTheNodeObjectTakesEffectAtOnce) {  // T-7
  put(test::service("a", "10.43.0.1"));
  auto s = test::slice("a", {"10.42.1.1", "10.42.1.2"});
  s.endpoints[0].for_zones = {"west"};
  s.endpoints[1].for_zones = {"east"};
  EXPECT_EQ(2U, at(put(s), 0).cluster.size());
  model::Delta node;
  node.nodes.emplace_back().name = "kestrel";
  node.nodes.back().labels["topology.kubernetes.io/zone"] = "west";
  EXPECT_EQ(1U, at(update(node), 0).cluster.size());
}

TEST_F(CompilerTest, HostAddressesAreNodePortAddressesAtOnce) {
  node_.config.node_port_addresses = {"192.0.2.0/24"};
  auto s = test::service("a", "10.43.0.1");
  s.type = "NodePort";
  s.ports[0].node_port = 30080;
  put(s);
  node_.host.addresses.push_back({test::ip("192.0.2.111"), "eth1"});
  EXPECT_THAT(update({})->node().v4.node_ports.addresses,
              ElementsAre(test::ip("192.0.2.11"), test::ip("192.0.2.111")));
}

TEST_F(CompilerTest, UnparsableServiceCidrIsReportedAndTheOthersHold) {
  model::Delta d;
  d.service_cidrs = {{"bad", {"10.43.0.0/99", "10.44.0.0/16"}}};
  EXPECT_THAT(update(d)->node().v4.service_cidrs, ElementsAre(test::cidr("10.44.0.0/16")));
  ASSERT_EQ(1U, last_.report.lines.size());
  EXPECT_EQ("servicecidr bad", last_.report.lines[0].object);
  EXPECT_EQ("spec.cidrs[0]", last_.report.lines[0].field);
}

TEST_F(CompilerTest, ServiceThatBecomesEmptyIsStillThere) {
  put(test::service("a", "10.43.0.1"));
  put(test::slice("a", {"10.42.1.1"}));
  model::Delta gone;
  gone.deleted_slices = {{"shop", "a-a"}};
  const auto table = update(gone);
  EXPECT_EQ(1U, table->service_count());
  EXPECT_FALSE(at(table, 0).has_any);
}

TEST_F(CompilerTest, SourcePortsDefaultByTheKindOfAddress) {
  EXPECT_EQ(40960, update({})->node().snat_first_port);
  node_.config.snat_addresses = {test::ip("203.0.113.200")};
  EXPECT_EQ(1024, update({})->node().snat_first_port);
  EXPECT_EQ(65535, last_.table->node().snat_last_port);
  node_.config.snat_first_port = 2048;
  EXPECT_EQ(2048, update({})->node().snat_first_port);
}

}  // namespace
}  // namespace sluice::compile
