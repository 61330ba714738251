// Explain: every step has its rule, and the steps say what was decided.
#include "control/compile/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/small_cluster.h"

namespace sluice::compile {
namespace {

using test::ip;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

class ExplainTest : public testing::Test {
 protected:
  Explanation explain(std::string_view from, std::string_view to, std::uint16_t port,
                      std::string_view ingress = "eth0") {
    cluster_.compile();
    const core::Flow flow{{ip(from), ip(to), 40000, port, core::Protocol::kTcp}, ingress};
    return compile::explain({*cluster_.compiled.table, flow, &cluster_.state, cluster_.config});
  }
  static std::vector<std::string> lines(const std::vector<core::Step>& steps) {
    std::vector<std::string> out;
    for (const core::Step& step : steps) {
      out.push_back("[" + step.rule + "] " + step.text);
    }
    return out;
  }
  static std::vector<std::string> endpoint_lines(const Explanation& e) {
    std::vector<std::string> out;
    for (const ExplainedEndpoint& endpoint : e.endpoints) {
      out.push_back("[" + endpoint.why.rule + "] " + endpoint.why.text);
    }
    return out;
  }
  /// shop/web at 10.43.0.1:80 and VIP 203.0.113.5 with three endpoints.
  void put_web(const std::string& external_policy = "Cluster") {
    auto web = test::service("web", "10.43.0.1");
    web.type = "LoadBalancer";
    web.external_traffic_policy = external_policy;
    web.load_balancer_ingress = {{"203.0.113.5", "", {}}};
    cluster_.put(web);
    auto slice = test::slice("web", {"10.42.1.1", "10.42.1.2", "10.42.1.3"});
    slice.endpoints[0].node_name = "kestrel";
    slice.endpoints[1].ready = false;
    slice.endpoints[2].ready = false;
    slice.endpoints[2].serving = true;
    slice.endpoints[2].terminating = true;
    cluster_.put(slice);
  }

  test::SmallCluster cluster_;
};

TEST_F(ExplainTest, SaysWhyEachEndpointIsInOrOut) {
  put_web();
  const auto e = explain("10.42.7.7", "10.43.0.1", 80);
  EXPECT_THAT(endpoint_lines(e),
              ElementsAre("[C-2] 10.42.1.1:8080 in: ready, on this node",
                          "[C-4] 10.42.1.2:8080 out: not ready",
                          "[C-3] 10.42.1.3:8080 out: terminating, and others are ready"));
  EXPECT_THAT(lines(e.before), Contains("[P-3] 10.43.0.1:80/tcp is a cluster IP of shop/web"));
  EXPECT_THAT(lines(e.before),
              Contains("[P-2] no masquerade: 10.42.7.7 is of the pods' range 10.42.0.0/16"));
  EXPECT_EQ(verdict_text(e), "forward to 10.42.1.1:8080, mode nat, source kept");
}

TEST_F(ExplainTest, SaysThatExternalTrafficIsMasqueraded) {
  put_web();
  const auto e = explain("198.51.100.9", "203.0.113.5", 80);
  EXPECT_THAT(lines(e.before),
              Contains("[P-5] masquerade: external traffic with policy Cluster"));
  EXPECT_THAT(lines(e.after), Contains("[mode] fullnat: the source is translated"));
  EXPECT_TRUE(e.endpoints[0].masquerade);
}

TEST_F(ExplainTest, SaysWhatAModeOverrides) {
  put_web();
  auto& web = cluster_.state.services.begin()->second;
  web.annotations["sluice.dev/forwarding-mode"] = "nat";
  const auto e = explain("198.51.100.9", "203.0.113.5", 80);
  EXPECT_THAT(lines(e.after), Contains(HasSubstr("[mode] nat: the Service asks for it, which "
                                                 "overrides the masquerade")));
  const auto from_node = explain("192.0.2.11", "203.0.113.5", 80);
  EXPECT_THAT(lines(from_node.after), Contains(HasSubstr("the Service asks for nat, but")));
}

TEST_F(ExplainTest, NamesTheSchedulerItsFlagsAndWeights) {
  put_web();
  auto& web = cluster_.state.services.begin()->second;
  cluster_.state.slices.begin()->second.endpoints[1].ready = true;
  web.annotations["sluice.dev/scheduler"] = "mh";
  web.annotations["sluice.dev/scheduler-flags"] = "mh-fallback";
  web.annotations["sluice.dev/weights"] = "10.42.1.1=3";
  const auto e = explain("10.42.7.7", "10.43.0.1", 80);
  EXPECT_THAT(lines(e.after),
              Contains("[EP-9] scheduler mh(mh-fallback) over 2 candidates, a table of 16381 slots"));
  EXPECT_THAT(lines(e.after), Contains("[weight] weights 10.42.1.1:8080=3, 10.42.1.2:8080=1"));
  EXPECT_THAT(lines(e.after), Contains(HasSubstr("[EP-9] the client address hashes to 10.42.1.")));
  EXPECT_THAT(endpoint_lines(e),
              Contains("[C-2] 10.42.1.1:8080 in: ready, on this node, weight 3"));
}

TEST_F(ExplainTest, SaysWhatDrOverridesAndThatItMapsNoPort) {
  put_web();
  auto& web = cluster_.state.services.begin()->second;
  web.annotations["sluice.dev/forwarding-mode"] = "dr";
  const auto mapped = explain("198.51.100.9", "203.0.113.5", 80);
  EXPECT_THAT(lines(mapped.before), Contains(HasSubstr("[mode] reject: load-balancer VIP of "
                                                       "shop/web cannot be served by mode dr")));
  cluster_.state.slices.begin()->second.ports[0].port = 80;
  const auto from_node = explain("192.0.2.11", "203.0.113.5", 80);
  EXPECT_THAT(lines(from_node.before), Contains(HasSubstr("[P-5] masquerade: source 192.0.2.11")));
  EXPECT_THAT(lines(from_node.after),
              Contains("[P-9] the source is kept: mode dr never translates it, which overrides the "
                       "masquerade above"));
  EXPECT_THAT(lines(from_node.after), Contains(HasSubstr("[mode] dr: the Service asks for it, which "
                                                         "overrides the masquerade")));
  EXPECT_EQ(verdict_text(from_node), "forward to 10.42.1.1:80, mode dr, source kept");
}

TEST_F(ExplainTest, SaysWhyTheLocalListIsShort) {
  put_web("Local");
  const auto e = explain("198.51.100.9", "203.0.113.5", 80);
  EXPECT_THAT(endpoint_lines(e),
              ElementsAre("[C-2] 10.42.1.1:8080 in: ready, on this node",
                          "[M-6] 10.42.1.2:8080 out: on node heron, not on kestrel",
                          "[M-6] 10.42.1.3:8080 out: on node heron, not on kestrel"));
  EXPECT_THAT(lines(e.before), Contains("[S-5] externalTrafficPolicy Local"));
  const auto from_pod = explain("10.42.7.7", "203.0.113.5", 80);
  EXPECT_THAT(lines(from_pod.before), Contains(HasSubstr("[P-5] policy Local, but 10.42.7.7")));
}

TEST_F(ExplainTest, SaysWhyTheTopologyModeIsWhatItIs) {
  cluster_.config.zone = "west";
  put_web();
  auto& slice = cluster_.state.slices.begin()->second;
  slice.endpoints[1].ready = true;
  slice.endpoints[0].for_zones = {"west"};
  const auto none = explain("10.42.7.7", "10.43.0.1", 80);
  EXPECT_THAT(lines(none.before),
              Contains("[T-3] topology none: 10.42.1.1:8080 has no node hint, 10.42.1.2:8080 has "
                       "no zone hint"));
  slice.endpoints[1].for_zones = {"east"};
  const auto zone = explain("10.42.7.7", "10.43.0.1", 80);
  EXPECT_THAT(lines(zone.before), Contains(HasSubstr("[T-3] topology same-zone")));
  EXPECT_THAT(endpoint_lines(zone),
              Contains("[T-5] 10.42.1.2:8080 out: its hints name zone east, not west"));
}

TEST_F(ExplainTest, AHairpinIsNamedForItsEndpointOnly) {
  put_web();
  const auto e = explain("10.42.1.1", "10.43.0.1", 80);
  EXPECT_THAT(lines(e.after), Contains("[P-9] 10.42.1.1:8080 is the source itself (hairpin): the "
                                       "source is translated"));
}

TEST_F(ExplainTest, RefusalsEndWithTheirRule) {
  cluster_.put(test::service("empty", "10.43.0.2"));
  const auto reject = explain("10.42.7.7", "10.43.0.2", 80);
  EXPECT_EQ(lines(reject.before).back(), "[EP-1] shop/empty has no endpoints at all");
  EXPECT_THAT(lines(reject.before),
              Contains("[P-6] reject: cluster IP of shop/empty has no endpoint anywhere"));
  const auto stray = explain("10.42.7.7", "10.43.0.99", 80);
  EXPECT_EQ(lines(stray.before).back(),
            "[P-7] drop: inside a ServiceCIDR, but no Service has this address");
  const auto pass = explain("10.42.7.7", "198.51.100.1", 80);
  EXPECT_EQ(lines(pass.before).back(), "[P-8] pass: nothing here is for this flow");
  EXPECT_EQ(verdict_text(pass), "pass: to the host or on its way, unchanged");
}

TEST_F(ExplainTest, AStateThatIsNotTheTablesIsSaidAndTheTableHolds) {
  put_web();
  cluster_.compile();
  const core::TablePtr table = cluster_.compiled.table;
  cluster_.state.slices.clear();
  const core::Flow flow{{ip("10.42.7.7"), ip("10.43.0.1"), 1, 80, core::Protocol::kTcp}, "eth0"};
  const auto e = compile::explain({*table, flow, &cluster_.state, cluster_.config});
  EXPECT_THAT(lines(e.before), Contains(HasSubstr("[SY-2]")));
  ASSERT_EQ(e.endpoints.size(), 3u);
  EXPECT_TRUE(e.endpoints[0].candidate);
  EXPECT_FALSE(e.endpoints[1].candidate);
}

}  // namespace
}  // namespace sluice::compile
