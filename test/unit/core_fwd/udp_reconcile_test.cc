// CT-1..CT-4, CT-6: which UDP flows a change makes stale.
#include "dataplane/core/fwd/udp_reconcile.h"

#include <gtest/gtest.h>

#include "test/unit/core_fwd/table_fixture.h"

namespace sluice::core {
namespace {

constexpr std::uint16_t kNodePort = 30053;

ServicePort dns(std::vector<Endpoint> endpoints, Protocol protocol = Protocol::kUdp) {
  ServicePort b = block(protocol == Protocol::kUdp ? "infra/res:dns" : "infra/res:dns-tcp",
                        "10.43.0.53", std::move(endpoints));
  b.protocol = protocol;
  b.node_port = kNodePort;
  b.externally_accessible = true;
  return with_policy(b, TrafficPolicy::kCluster, TrafficPolicy::kCluster);
}

TablePtr table_of(const std::vector<ServicePort>& blocks, TablePtr base = nullptr) {
  TableBuilder builder(std::move(base));
  for (std::uint32_t i = 0; i < blocks.size(); ++i) {
    add(builder, i, blocks[i]);
  }
  TablePtr table = frozen(builder);
  EXPECT_NE(table, nullptr);
  return table;
}

UdpFlow flow(const char* to, std::uint16_t port, const char* backend,
             std::uint16_t backend_port = 8080) {
  return {ip("198.51.100.7"), 41000, ip(to), port, ip(backend), backend_port};
}

TEST(UdpReconcile, FlowToAnEndpointThatLeftIsStaleOnEveryFrontend) {
  const auto table = table_of({dns({endpoint("10.42.1.53", 0)})});
  EXPECT_TRUE(is_stale(*table, flow("10.43.0.53", 80, "10.42.9.9")));
  EXPECT_TRUE(is_stale(*table, flow("192.0.2.11", kNodePort, "10.42.9.9")));
  EXPECT_FALSE(is_stale(*table, flow("10.43.0.53", 80, "10.42.1.53")));
  EXPECT_FALSE(is_stale(*table, flow("192.0.2.11", kNodePort, "10.42.1.53")));
}

TEST(UdpReconcile, OtherBackendPortAndUntranslatedFlowsAreStale) {
  const auto table = table_of({dns({endpoint("10.42.1.53", 0)})});
  EXPECT_TRUE(is_stale(*table, flow("10.43.0.53", 80, "10.42.1.53", 8081)));
  EXPECT_TRUE(is_stale(*table, flow("10.43.0.53", 80, "10.43.0.53", 80)));
}

TEST(UdpReconcile, ServingIsEnoughReadyAndTerminatingDoNotMatter) {
  Endpoint draining = endpoint("10.42.1.53", 0);
  draining.ready = false;
  draining.terminating = true;
  Endpoint gone = endpoint("10.42.2.53", 1);
  gone.serving = false;
  const auto table = table_of({dns({draining, gone})});
  EXPECT_FALSE(is_stale(*table, flow("10.43.0.53", 80, "10.42.1.53")));
  EXPECT_TRUE(is_stale(*table, flow("10.43.0.53", 80, "10.42.2.53")));
}

TEST(UdpReconcile, ServiceWithoutServingEndpointLeavesItsFlowsAlone) {
  const auto table = table_of({dns({})});
  EXPECT_FALSE(is_stale(*table, flow("10.43.0.53", 80, "10.42.1.53")));
}

TEST(UdpReconcile, FlowsToNoFrontendAreLeftAlone) {
  const auto table = table_of({dns({endpoint("10.42.1.53", 0)})});
  const std::vector<UdpFlow> flows{flow("10.43.0.53", 81, "10.42.9.9"),
                                   flow("10.43.0.53", 80, "10.42.9.9"),
                                   flow("8.8.8.8", 53, "8.8.8.8", 53)};
  EXPECT_EQ(stale_udp_flows(*table, flows), std::vector<std::size_t>{1});
}

// CT-1
TEST(UdpReconcile, EndpointChangeOfAUdpServiceTriggersAlsoByItsTcpPort) {
  const auto before = table_of({dns({}), dns({endpoint("10.42.1.53", 0)}, Protocol::kTcp)});
  const auto after = table_of({dns({}), dns({}, Protocol::kTcp)}, before);
  EXPECT_TRUE(udp_endpoints_changed(before.get(), *after));
}

TEST(UdpReconcile, TcpOnlyServiceAndServiceChangesDoNotTrigger) {
  const auto before = table_of({dns({endpoint("10.42.1.53", 0)}, Protocol::kTcp)});
  const auto after = table_of({dns({}, Protocol::kTcp)}, before);
  EXPECT_FALSE(udp_endpoints_changed(before.get(), *after));
  ServicePort other = dns({endpoint("10.42.1.53", 0)});
  const auto first = table_of({other});
  other.affinity_seconds = 60;
  const auto second = table_of({other}, first);
  EXPECT_FALSE(udp_endpoints_changed(first.get(), *second));
  EXPECT_FALSE(udp_endpoints_changed(nullptr, *second));
}

}  // namespace
}  // namespace sluice::core
