// The packet procedure, P-1..P-10. The cases of test/conformance run it on whole clusters; here are
// the points that need a table made by hand.
#include "dataplane/core/fwd/decide.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/core_fwd/table_fixture.h"

namespace sluice::core {
namespace {

constexpr auto kCluster = TrafficPolicy::kCluster;
constexpr auto kLocal = TrafficPolicy::kLocal;

class DecideTest : public testing::Test {
 protected:
  DecideTest() {
    node_.v4.detector = {LocalDetector::Kind::kCidr, *parse_cidr("10.42.0.0/16"), ""};
    node_.v4.local_addresses = {ip("192.0.2.11")};
    node_.v4.node_ports.addresses = {ip("192.0.2.11")};
    node_.v4.active_cluster_ips = {ip("10.43.0.1"), ip("10.43.0.2")};
    node_.v4.service_cidrs = {*parse_cidr("10.43.0.0/16")};
  }

  void put(std::uint32_t slot, const ServicePort& b) { blocks_.emplace_back(slot, b); }

  Decision ask(std::string_view from, std::string_view to, std::uint16_t port,
               std::string_view ingress = "eth0") {
    TableBuilder builder(nullptr);
    builder.set_node(node_);
    for (const auto& [slot, b] : blocks_) {
      add(builder, slot, b);
    }
    auto table = builder.freeze();
    EXPECT_TRUE(table) << table.error().message;
    table_ = table ? *table : nullptr;
    flow_ = {{ip(from), ip(to), 40000, port, Protocol::kTcp}, ingress};
    const Decision decision = decide(*table_, flow_);
    expect_same_when_looked_up_before(decision);
    return decision;
  }

  /// Workers have the frontend already when they ask.
  void expect_same_when_looked_up_before(const Decision& decision) {
    const FlowTuple& to = flow_.tuple;
    const Decision other =
        decide(*table_, flow_, table_->find_frontend({to.dst, to.dport, to.protocol, false}));
    EXPECT_EQ(other.verdict, decision.verdict);
    EXPECT_EQ(other.reason, decision.reason);
    EXPECT_EQ(other.frontend, decision.frontend);
    EXPECT_EQ(other.service, decision.service);
    EXPECT_EQ(other.eligible.data(), decision.eligible.data());
    EXPECT_EQ(other.eligible.size(), decision.eligible.size());
    EXPECT_EQ(other.masquerade, decision.masquerade);
    EXPECT_EQ(other.affinity_seconds, decision.affinity_seconds);
  }

  static ServicePort external(std::string_view cluster_ip, std::vector<Endpoint> endpoints,
                              TrafficPolicy policy = kCluster) {
    auto b = block("shop/a", cluster_ip, std::move(endpoints));
    b.externally_accessible = true;
    b.external_ips = {ip("203.0.113.99")};
    b.load_balancer_vips = {ip("203.0.113.20")};
    b.node_port = 30080;
    return with_policy(b, kCluster, policy);
  }

  NodePart node_;
  std::vector<std::pair<std::uint32_t, ServicePort>> blocks_;
  TablePtr table_;
  Flow flow_;
};

TEST_F(DecideTest, PodToClusterIpKeepsItsSource) {
  put(0, block("shop/a", "10.43.0.1", {endpoint("10.42.1.1", 0)}));
  const Decision d = ask("10.42.9.9", "10.43.0.1", 80);
  EXPECT_EQ(FlowVerdict::kForward, d.verdict);
  EXPECT_FALSE(d.masquerade);
  EXPECT_EQ(1U, d.eligible.size());
}

TEST_F(DecideTest, OthersToClusterIpAreMasqueraded) {  // P-2
  put(0, block("shop/a", "10.43.0.1", {endpoint("10.42.1.1", 0)}));
  EXPECT_TRUE(ask("198.51.100.7", "10.43.0.1", 80).masquerade);
  node_.v4.detector = {};
  EXPECT_FALSE(ask("198.51.100.7", "10.43.0.1", 80).masquerade);
  node_.masquerade_all = true;
  EXPECT_TRUE(ask("10.42.9.9", "10.43.0.1", 80).masquerade);
}

TEST_F(DecideTest, InterfaceDetectorsLookAtTheIngressOnly) {
  put(0, block("shop/a", "10.43.0.1", {endpoint("10.42.1.1", 0)}));
  node_.v4.detector = {LocalDetector::Kind::kInterfacePrefix, {}, "veth"};
  EXPECT_FALSE(ask("198.51.100.7", "10.43.0.1", 80, "veth12").masquerade);
  EXPECT_TRUE(ask("10.42.9.9", "10.43.0.1", 80, "eth0").masquerade);
  EXPECT_TRUE(ask("192.0.2.11", "10.43.0.1", 80, "").masquerade);
  node_.v4.detector = {LocalDetector::Kind::kBridge, {}, "cni0"};
  EXPECT_FALSE(ask("10.42.9.9", "10.43.0.1", 80, "cni0").masquerade);
}

TEST_F(DecideTest, ExternalClusterPolicyIsMasqueraded) {  // P-5
  put(0, external("10.43.0.1", {endpoint("10.42.1.1", 0)}));
  for (const char* to : {"203.0.113.99", "203.0.113.20"}) {
    const Decision d = ask("198.51.100.7", to, 80);
    EXPECT_EQ(FlowVerdict::kForward, d.verdict);
    EXPECT_TRUE(d.masquerade);
  }
  EXPECT_EQ(FrontendKind::kNodePort, ask("198.51.100.7", "192.0.2.11", 30080).frontend);
}

TEST_F(DecideTest, ExternalLocalPolicyTakesLocalOnesAndShortCircuits) {  // P-5 a, b, c
  put(0, external("10.43.0.1", {endpoint("10.42.1.1", 0, true), endpoint("10.42.2.1", 1)}, kLocal));
  const Decision outside = ask("198.51.100.7", "203.0.113.20", 80);
  EXPECT_EQ(1U, outside.eligible.size());
  EXPECT_FALSE(outside.masquerade);
  const Decision pod = ask("10.42.9.9", "203.0.113.20", 80);
  EXPECT_EQ(DecisionReason::kShortCircuitPod, pod.reason);
  EXPECT_EQ(2U, pod.eligible.size());
  EXPECT_FALSE(pod.masquerade);
  const Decision host = ask("192.0.2.11", "203.0.113.20", 80, "");
  EXPECT_EQ(DecisionReason::kShortCircuitHost, host.reason);
  EXPECT_TRUE(host.masquerade);
}

TEST_F(DecideTest, LocalPolicyWithoutLocalEndpointDropsOutsideTrafficOnly) {  // P-5 d, P-6
  put(0, external("10.43.0.1", {endpoint("10.42.2.1", 0)}, kLocal));
  EXPECT_EQ(FlowVerdict::kDrop, ask("198.51.100.7", "203.0.113.20", 80).verdict);
  EXPECT_EQ(DecisionReason::kNoLocalEndpoints, ask("198.51.100.7", "203.0.113.20", 80).reason);
  EXPECT_EQ(FlowVerdict::kForward, ask("10.42.9.9", "203.0.113.20", 80).verdict);
}

TEST_F(DecideTest, EmptyServiceRejectsOnEveryFrontend) {  // section 9
  put(0, external("10.43.0.1", {}));
  for (const auto& [to, port] : std::vector<std::pair<const char*, std::uint16_t>>{
           {"10.43.0.1", 80}, {"203.0.113.99", 80}, {"203.0.113.20", 80}, {"192.0.2.11", 30080}}) {
    const Decision d = ask("198.51.100.7", to, port);
    EXPECT_EQ(FlowVerdict::kReject, d.verdict) << to;
    EXPECT_EQ(DecisionReason::kNoEndpoints, d.reason) << to;
    EXPECT_NE(nullptr, d.service) << to;
  }
}

TEST_F(DecideTest, SourceRangesGuardVipsOnlyAndComeFirst) {  // P-1, F-1, F-6
  auto b = external("10.43.0.1", {});
  b.allowed_sources = {*parse_cidr("198.51.100.0/24")};
  put(0, b);
  EXPECT_EQ(FlowVerdict::kDrop, ask("10.42.9.9", "203.0.113.20", 80).verdict);
  EXPECT_EQ(FlowVerdict::kReject, ask("198.51.100.7", "203.0.113.20", 80).verdict);
  EXPECT_EQ(FlowVerdict::kReject, ask("10.42.9.9", "203.0.113.99", 80).verdict);
}

// P-3: an external IP that is a node address beats the node port while it has endpoints.
TEST_F(DecideTest, ExternalIpOnTheNodeBeatsTheNodePortUnlessEmpty) {
  put(0, external("10.43.0.1", {endpoint("10.42.1.1", 0)}));
  auto kiosk = block("shop/kiosk", "10.43.0.2", {endpoint("10.42.2.2", 1)});
  kiosk.port = 30080;
  kiosk.externally_accessible = true;
  kiosk.external_ips = {ip("192.0.2.11")};
  put(1, with_policy(kiosk, kCluster, kCluster));
  EXPECT_EQ("shop/kiosk", ask("198.51.100.7", "192.0.2.11", 30080).service->name);
  blocks_.pop_back();
  auto empty = block("shop/kiosk", "10.43.0.2", {});
  empty.port = 30080;
  empty.externally_accessible = true;
  empty.external_ips = {ip("192.0.2.11")};
  put(1, with_policy(empty, kCluster, kCluster));
  const Decision d = ask("198.51.100.7", "192.0.2.11", 30080);
  EXPECT_EQ(FlowVerdict::kForward, d.verdict);
  EXPECT_EQ("shop/a", d.service->name);
}

// F20: a known address with an unknown port.
TEST_F(DecideTest, StrayTrafficMeetsItsRule) {  // P-7, P-8
  put(0, external("10.43.0.1", {endpoint("10.42.1.1", 0)}));
  EXPECT_EQ(FlowVerdict::kReject, ask("10.42.9.9", "10.43.0.1", 81).verdict);
  EXPECT_EQ(FlowVerdict::kDrop, ask("10.42.9.9", "10.43.99.99", 80).verdict);
  EXPECT_EQ(FlowVerdict::kPass, ask("198.51.100.7", "203.0.113.20", 81).verdict);
  EXPECT_EQ(FlowVerdict::kPass, ask("198.51.100.7", "192.0.2.11", 22).verdict);
  EXPECT_EQ(nullptr, ask("198.51.100.7", "192.0.2.11", 22).service);
}

TEST_F(DecideTest, StrayRuleSparesWhatIsDeliveredLocally) {  // P-7
  put(0, block("shop/a", "10.43.0.1", {}));
  node_.v4.local_addresses = {ip("10.43.0.1"), ip("192.0.2.11")};
  EXPECT_EQ(FlowVerdict::kPass, ask("10.42.9.9", "10.43.0.1", 81).verdict);
}

TEST_F(DecideTest, NodePortsOfAMatchAllFamilySpareLoopback) {  // NP-5
  put(0, external("10.43.0.1", {endpoint("10.42.1.1", 0)}));
  node_.v4.node_ports = {true, {}};
  EXPECT_EQ(FlowVerdict::kForward, ask("198.51.100.7", "192.0.2.11", 30080).verdict);
  EXPECT_EQ(FlowVerdict::kPass, ask("127.0.0.1", "127.0.0.1", 30080, "lo").verdict);
  EXPECT_EQ(FlowVerdict::kPass, ask("198.51.100.7", "192.0.2.12", 30080).verdict);
}

TEST_F(DecideTest, HairpinTranslatesTheSourceOfALocalEndpoint) {  // P-9
  put(0, block("shop/a", "10.43.0.1", {endpoint("10.42.1.1", 0, true), endpoint("10.42.2.1", 1)}));
  const Decision d = ask("10.42.1.1", "10.43.0.1", 80);
  EXPECT_TRUE(source_is_translated(d, flow_, d.service->endpoints[0]));
  EXPECT_EQ(ForwardingMode::kFullNat, effective_mode(d, flow_, d.service->endpoints[0]));
  EXPECT_FALSE(source_is_translated(d, flow_, d.service->endpoints[1]));
  const Decision remote = ask("10.42.2.1", "10.43.0.1", 80);
  EXPECT_FALSE(source_is_translated(remote, flow_, remote.service->endpoints[1]));
}

// Design section 5: a Service that names a mode gets it for its external frontends.
TEST_F(DecideTest, NamedModeHoldsForExternalFrontendsOnly) {
  auto b = external("10.43.0.1", {endpoint("10.42.1.1", 0, true)});
  b.mode = ForwardingMode::kDr;
  b.masquerade_external = false;
  put(0, b);
  Decision d = ask("198.51.100.7", "203.0.113.20", 80);
  EXPECT_EQ(ForwardingMode::kDr, effective_mode(d, flow_, d.service->endpoints[0]));
  d = ask("10.42.1.1", "203.0.113.20", 80);  // hairpin: dr never translates the source
  EXPECT_FALSE(source_is_translated(d, flow_, d.service->endpoints[0]));
  d = ask("198.51.100.7", "10.43.0.1", 80);
  EXPECT_EQ(ForwardingMode::kFullNat, effective_mode(d, flow_, d.service->endpoints[0]));
}

TEST_F(DecideTest, NamedNatStillMasqueradesHostSourcesAndHairpin) {
  auto b = external("10.43.0.1", {endpoint("10.42.1.1", 0, true)});
  b.mode = ForwardingMode::kNat;
  b.masquerade_external = false;
  put(0, b);
  Decision d = ask("198.51.100.7", "203.0.113.20", 80);
  EXPECT_EQ(ForwardingMode::kNat, effective_mode(d, flow_, d.service->endpoints[0]));
  d = ask("192.0.2.11", "203.0.113.20", 80, "");
  EXPECT_EQ(ForwardingMode::kFullNat, effective_mode(d, flow_, d.service->endpoints[0]));
  d = ask("10.42.1.1", "203.0.113.20", 80);
  EXPECT_EQ(ForwardingMode::kFullNat, effective_mode(d, flow_, d.service->endpoints[0]));
}

TEST_F(DecideTest, NamedFullNatTranslatesWithLocalPolicyToo) {
  auto b = external("10.43.0.1", {endpoint("10.42.1.1", 0, true)}, kLocal);
  b.mode = ForwardingMode::kFullNat;
  b.masquerade_external = true;
  put(0, b);
  const Decision d = ask("198.51.100.7", "203.0.113.20", 80);
  EXPECT_EQ(ForwardingMode::kFullNat, effective_mode(d, flow_, d.service->endpoints[0]));
}

TEST_F(DecideTest, FamiliesDoNotMix) {
  put(0, block("shop/a", "10.43.0.1", {}));
  EXPECT_EQ(FlowVerdict::kPass, ask("2001:db8::1", "10.43.0.1", 80).verdict);
}

}  // namespace
}  // namespace sluice::core
