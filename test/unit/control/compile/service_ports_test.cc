// Sections 2 and 3: O-1..O-7, S-1..S-3, S-5, S-6, S-9..S-13.
#include "control/compile/service_ports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/compile/validate.h"
#include "test/support/small_cluster.h"

namespace sluice::compile {
namespace {

using core::Family;
using test::SmallCluster;
using testing::ElementsAre;
using testing::IsEmpty;

NormalService normal(const model::Service& service, bool allow_external_ips = true) {
  std::vector<ReportLine> lines;
  Reporter report("service", lines);
  NodeContext node;
  node.allow_external_ips = allow_external_ips;
  return normalise(service, node, report);
}

std::vector<std::string> texts(const std::vector<core::IpAddress>& list) {
  std::vector<std::string> out;
  for (const auto& a : list) {
    out.push_back(core::to_string(a));
  }
  return out;
}

TEST(ServicePorts, NamesThatKubernetesDoesNotTakeAreRefusedByObject) {
  const auto faults = [](const model::Service& service) {
    std::string text;
    for (const ReportLine& line : validate(service)) {
      text += line.field + " " + line.reason + "\n";
    }
    return text;
  };
  auto s = test::service("cart.v2-x", "10.43.0.20");
  EXPECT_EQ(faults(s), "");
  s.ports.push_back(s.ports[0]);
  s.ports[1].port += 1;
  s.ports[1].name = "b\na";
  EXPECT_THAT(faults(s), testing::StartsWith("spec.ports[1].name has other characters"));
  ASSERT_EQ(normal(s).ports.size(), 1u);
  for (const char* bad : {"x\" }", "a b", "Cart", "a/b", "a:b", "caf\xc3\xa9"}) {
    s = test::service(bad, "10.43.0.20");
    EXPECT_THAT(faults(s), testing::StartsWith("metadata.name has other characters")) << bad;
    EXPECT_THAT(normal(s).families, IsEmpty()) << bad;
  }
}

TEST(ServicePorts, LabelledForAnotherProxyYieldsNothing) {  // O-1
  auto s = test::service("cart", "10.43.0.20");
  s.labels["service.kubernetes.io/service-proxy-name"] = "";
  EXPECT_THAT(normal(s).families, IsEmpty());
}

TEST(ServicePorts, HeadlessYieldsNothing) {  // O-2
  EXPECT_THAT(normal(test::service("cart", "None")).families, IsEmpty());
  EXPECT_THAT(normal(test::service("cart", "")).families, IsEmpty());
}

TEST(ServicePorts, ExternalNameYieldsNothingEvenWithAClusterIp) {  // O-3
  auto s = test::service("cart", "10.43.0.20");
  s.type = "ExternalName";
  EXPECT_THAT(normal(s).families, IsEmpty());
}

TEST(ServicePorts, FamilyWithoutClusterIpYieldsNothing) {  // O-5
  auto s = test::service("cart", "10.43.0.20");
  s.load_balancer_ingress.push_back({"2001:db8::1", "", std::nullopt});
  const NormalService n = normal(s);
  ASSERT_EQ(1U, n.families.size());
  EXPECT_EQ(Family::kIpv4, n.families[0].family);
  EXPECT_THAT(n.families[0].load_balancer_vips, IsEmpty());
}

TEST(ServicePorts, ClusterIpsFollowTheOrderOfFamilies) {  // S-1
  auto s = test::service("cart", "fd43::20");
  s.ip_families = {"IPv6", "IPv4"};
  s.cluster_ips = {"fd43::20", "10.43.0.20"};
  const NormalService n = normal(s);
  ASSERT_EQ(2U, n.families.size());
  EXPECT_EQ("10.43.0.20", core::to_string(n.families[0].cluster_ip));
  EXPECT_EQ("fd43::20", core::to_string(n.families[1].cluster_ip));
}

TEST(ServicePorts, FamilyBeyondTheListHasNoClusterIp) {  // S-1
  auto s = test::service("cart", "10.43.0.20");
  s.ip_families = {"IPv4", "IPv6"};
  EXPECT_EQ(1U, normal(s).families.size());
}

TEST(ServicePorts, ExternalIpsAreParsedLeniently) {  // S-2
  auto s = test::service("cart", "10.43.0.20");
  s.external_ips = {"203.0.113.099", " ", "rubbish", "2001:db8::1", "203.0.113.99"};
  EXPECT_THAT(texts(normal(s).families.at(0).external_ips), ElementsAre("203.0.113.99"));
}

TEST(ServicePorts, GateOffHidesExternalIpsButNotThatThereAreSome) {  // S-2, S-9
  auto s = test::service("cart", "10.43.0.20");
  s.external_ips = {"203.0.113.99"};
  const NormalService n = normal(s, false);
  EXPECT_THAT(n.families.at(0).external_ips, IsEmpty());
  EXPECT_TRUE(n.families.at(0).externally_accessible);
}

TEST(ServicePorts, VipsAreIngressAddressesOfModeVip) {  // S-3
  auto s = test::service("cart", "10.43.0.20");
  s.load_balancer_ingress = {{"203.0.113.1", "", std::nullopt},
                             {"203.0.113.2", "", "VIP"},
                             {"203.0.113.3", "", "Proxy"},
                             {"", "host.example", std::nullopt}};
  EXPECT_THAT(texts(normal(s).families.at(0).load_balancer_vips),
              ElementsAre("203.0.113.1", "203.0.113.2"));
}

TEST(ServicePorts, ExternalPolicyLocalNeedsAnEligibleType) {  // S-5
  auto s = test::service("cart", "10.43.0.20");
  s.external_traffic_policy = "Local";
  EXPECT_EQ(core::TrafficPolicy::kCluster, normal(s).external_policy);
  s.external_ips = {"203.0.113.99"};
  EXPECT_EQ(core::TrafficPolicy::kLocal, normal(s).external_policy);
  s.external_ips.clear();
  s.type = "NodePort";
  EXPECT_EQ(core::TrafficPolicy::kLocal, normal(s).external_policy);
}

TEST(ServicePorts, UsesClusterAndLocalEndpointsAsPoliciesNeed) {  // S-10, S-11
  SmallCluster cluster;
  auto s = test::service("cart", "10.43.0.20");
  s.internal_traffic_policy = "Local";
  cluster.put(s);
  cluster.compile();
  EXPECT_FALSE(cluster.block("shop/cart")->uses_cluster);
  EXPECT_TRUE(cluster.block("shop/cart")->uses_local);
  s.type = "NodePort";
  s.ports[0].node_port = 30080;
  cluster.put(s);
  cluster.compile();
  EXPECT_TRUE(cluster.block("shop/cart")->uses_cluster);
}

TEST(ServicePorts, SameNumberOfTwoProtocolsAreTwoServicePorts) {  // S-12, F27
  SmallCluster cluster;
  auto s = test::service("dns", "10.43.0.53");
  s.ports = {{"tcp", "TCP", 53, 0, "", ""}, {"udp", "UDP", 53, 0, "", ""}};
  cluster.put(s);
  auto endpoints = test::slice("dns", {"10.42.1.1"});
  endpoints.ports = {{"tcp", "TCP", 53}};
  cluster.put(endpoints);
  cluster.compile();
  EXPECT_EQ(core::FlowVerdict::kForward, cluster.decide("10.42.1.9", "10.43.0.53", 53).verdict);
  EXPECT_EQ(core::FlowVerdict::kReject,
            cluster.decide("10.42.1.9", "10.43.0.53", 53, core::Protocol::kUdp).verdict);
}

TEST(ServicePorts, PrintedNameLeavesOutAnEmptyPortName) {  // M-3
  EXPECT_EQ("shop/cart", printed_name({"shop", "cart"}, ""));
  EXPECT_EQ("shop/cart:http", printed_name({"shop", "cart"}, "http"));
}

// F39: the bad parts alone are left out.
TEST(ServicePorts, BadPartsAreSkippedAndTheOthersStay) {
  SmallCluster cluster;
  auto s = test::service("odd", "10.43.0.20");
  s.ports = {{"zero", "TCP", 0, 0, "", ""},
             {"huge", "TCP", 70000, 0, "", ""},
             {"icmp", "ICMP", 80, 0, "", ""},
             {"good", "TCP", 80, 0, "", ""}};
  cluster.put(s);
  cluster.put(test::service("fine", "10.43.0.21"));
  cluster.compile();
  EXPECT_NE(nullptr, cluster.block("shop/odd:good"));
  EXPECT_EQ(nullptr, cluster.block("shop/odd:zero"));
  EXPECT_EQ(nullptr, cluster.block("shop/odd:huge"));
  EXPECT_NE(nullptr, cluster.block("shop/fine"));
  EXPECT_THAT(cluster.lines("service shop/odd"),
              ElementsAre("spec.ports[0].port: 0 is not in 1..65535",
                          "spec.ports[1].port: 70000 is not in 1..65535",
                          "spec.ports[2].protocol: 'ICMP' is not TCP, UDP or SCTP"));
}

// F26: every port of an address answers by its own presence, in whatever order they came.
TEST(ServicePorts, PortsOfOneAddressDoNotDisturbEachOther) {
  std::vector<std::uint16_t> order = {80, 443, 8080};
  do {
    model::ClusterState state;
    IdRegistry ids({});
    Compiler compiler(Profile::kNftables, ids);
    SmallCluster node;
    auto s = test::service("cart", "10.43.0.20");
    s.ports.clear();
    core::TablePtr table;
    for (const std::uint16_t port : order) {
      s.ports.push_back({"p" + std::to_string(port), "TCP", port, 0, "", ""});
      model::Delta delta;
      delta.services = {s};
      table = compiler.update(state, model::apply(state, delta), node.config, node.host)->table;
    }
    s.ports.erase(s.ports.begin());
    model::Delta delta;
    delta.services = {s};
    table = compiler.update(state, model::apply(state, delta), node.config, node.host)->table;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const auto found = table->find_frontend({test::ip("10.43.0.20"), order[i]});
      EXPECT_EQ(i != 0, found.has_value()) << order[i];
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

}  // namespace
}  // namespace sluice::compile
