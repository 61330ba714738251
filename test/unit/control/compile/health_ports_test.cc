// Section 14.1 (data): S-7, H-1, H-2, H-6.
#include "control/compile/health_ports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/small_cluster.h"

namespace sluice::compile {
namespace {

using test::SmallCluster;
using testing::ElementsAre;
using testing::IsEmpty;

model::Service edge() {
  auto s = test::service("edge", "10.43.0.40");
  s.type = "LoadBalancer";
  s.external_traffic_policy = "Local";
  s.health_check_node_port = 31443;
  s.ports = {{"http", "TCP", 80, 0, "", ""}, {"tls", "TCP", 443, 0, "", ""}};
  return s;
}

TEST(HealthPorts, CountDistinctLocalReadyAddressesOverAllPorts) {  // H-2
  SmallCluster cluster;
  cluster.put(edge());
  auto s = test::slice("edge", {"10.42.1.1", "10.42.1.2", "10.42.1.3", "10.42.2.1"});
  s.ports = {{"http", "TCP", 8080}, {"tls", "TCP", 8443}};
  for (std::size_t i = 0; i < 3; ++i) {
    s.endpoints[i].node_name = "kestrel";
  }
  s.endpoints[2].ready = false;
  s.endpoints[2].terminating = true;
  cluster.put(s);
  EXPECT_THAT(cluster.compile().health_ports,
              ElementsAre(HealthPort{{"shop", "edge"}, core::Family::kIpv4, 31443, 2}));
}

TEST(HealthPorts, ServiceWithoutSlicesCountsZero) {  // H-6
  SmallCluster cluster;
  cluster.put(edge());
  EXPECT_THAT(cluster.compile().health_ports,
              ElementsAre(HealthPort{{"shop", "edge"}, core::Family::kIpv4, 31443, 0}));
}

TEST(HealthPorts, OneForEachFamily) {  // H-1
  SmallCluster cluster;
  auto s = edge();
  s.ip_families = {"IPv4", "IPv6"};
  s.cluster_ips = {"10.43.0.40", "fd43::40"};
  cluster.put(s);
  EXPECT_EQ(2U, cluster.compile().health_ports.size());
}

TEST(HealthPorts, OnlyForLoadBalancersWithLocalPolicyAndAPort) {  // S-7
  SmallCluster cluster;
  auto s = edge();
  s.external_traffic_policy = "Cluster";
  cluster.put(s);
  EXPECT_THAT(cluster.compile().health_ports, IsEmpty());
  s = edge();
  s.health_check_node_port = 0;
  cluster.put(s);
  EXPECT_THAT(cluster.compile().health_ports, IsEmpty());
  EXPECT_THAT(cluster.lines("service shop/edge"), testing::SizeIs(1));
}

}  // namespace
}  // namespace sluice::compile
