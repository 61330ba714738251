// Design section 5, "Forwarding modes": what dr and ipip cannot do is refused by name.
#include "control/compile/modes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/compile/validate.h"
#include "test/support/small_cluster.h"

namespace sluice::compile {
namespace {

using core::FrontendKind;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ModesTest : public testing::Test {
 protected:
  ModesTest() {
    web_ = test::service("web", "10.43.0.20");
    web_.type = "LoadBalancer";
    web_.load_balancer_ingress = {{"203.0.113.20", "", std::nullopt}};
    web_.ports[0].name = "http";
    mode("dr");
  }
  void mode(const std::string& name) {
    web_.annotations["sluice.dev/forwarding-mode"] = name;
  }
  static model::EndpointSlice slice(std::int64_t port, const std::vector<std::string>& addresses,
                                    const std::string& name = "http") {
    auto s = test::slice("web", addresses, name + std::to_string(port));
    s.ports[0] = {name, "TCP", port};
    return s;
  }
  void compile() {
    cluster_.put(web_);
    cluster_.compile();
    EXPECT_EQ(cluster_.error, "");
  }
  core::FlowVerdict verdict(const char* to, std::uint16_t port = 80) {
    return cluster_.decide("198.51.100.9", to, port).verdict;
  }
  std::vector<std::string> faults() {
    std::vector<std::string> out;
    for (const auto& line : validate(web_)) {
      out.push_back(line.field);
    }
    return out;
  }
  test::SmallCluster cluster_;
  model::Service web_;
};

TEST_F(ModesTest, APortThatIsNotMappedIsServed) {
  cluster_.put(slice(80, {"10.42.1.1"}));
  compile();
  EXPECT_EQ(verdict("203.0.113.20"), core::FlowVerdict::kForward);
  EXPECT_THAT(cluster_.lines("service shop/web"), IsEmpty());
}

TEST_F(ModesTest, AMappedPortIsRefusedAndTheOthersOfTheServiceWork) {
  for (const char* name : {"dr", "ipip"}) {
    mode(name);
    web_.ports.resize(1);
    web_.ports.push_back({"tls", "TCP", 443, 0, "", ""});
    cluster_.put(slice(8080, {"10.42.1.1"}));
    cluster_.put(slice(443, {"10.42.1.1"}, "tls"));
    compile();
    EXPECT_EQ(verdict("203.0.113.20", 80), core::FlowVerdict::kReject);
    EXPECT_EQ(cluster_.decide("198.51.100.9", "203.0.113.20", 80).reason,
              core::DecisionReason::kModeRefuses);
    EXPECT_EQ(verdict("203.0.113.20", 443), core::FlowVerdict::kForward);
    // The mode is for external traffic: inside, ports are mapped as ever.
    EXPECT_EQ(verdict("10.43.0.20", 80), core::FlowVerdict::kForward);
    EXPECT_THAT(cluster_.lines("service shop/web"),
                ElementsAre("spec.ports[0]: mode " + std::string(name) +
                            " maps no port: endpoint 10.42.1.1:8080 of shop/web:http has another "
                            "than 80, so external traffic to this port is refused"));
  }
}

TEST_F(ModesTest, ANodePortIsRefusedWhileTheVipWorks) {
  web_.ports[0].node_port = 30080;
  cluster_.put(slice(80, {"10.42.1.1"}));
  compile();
  EXPECT_EQ(verdict("203.0.113.20"), core::FlowVerdict::kForward);
  EXPECT_EQ(verdict("192.0.2.11", 30080), core::FlowVerdict::kReject);
  EXPECT_THAT(cluster_.lines("service shop/web"),
              ElementsAre(HasSubstr("spec.ports[0].nodePort: mode dr maps no port")));
}

TEST_F(ModesTest, NatMapsWhatItLikes) {
  mode("nat");
  web_.ports[0].node_port = 30080;
  cluster_.put(slice(8080, {"10.42.1.1"}));
  compile();
  EXPECT_EQ(verdict("203.0.113.20"), core::FlowVerdict::kForward);
  EXPECT_EQ(verdict("192.0.2.11", 30080), core::FlowVerdict::kForward);
  EXPECT_THAT(cluster_.lines("service shop/web"), IsEmpty());
}

TEST_F(ModesTest, IpipTakesEndpointsOfTheOtherFamilyForExternalTraffic) {
  mode("ipip");
  cluster_.put(slice(80, {"fd42::1"}));
  compile();
  const auto external = cluster_.decide("198.51.100.9", "203.0.113.20", 80);
  EXPECT_THAT(test::eligible(external), ElementsAre("[fd42::1]:80"));
  const auto internal = cluster_.decide("10.42.7.7", "10.43.0.20", 80);
  EXPECT_EQ(internal.verdict, core::FlowVerdict::kReject);
  EXPECT_EQ(internal.reason, core::DecisionReason::kNoEndpoints);
}

TEST_F(ModesTest, EndpointsOfItsOwnFamilyComeFirstAndOtherModesDoNotCross) {
  cluster_.put(slice(80, {"fd42::1"}));
  compile();
  EXPECT_EQ(verdict("203.0.113.20"), core::FlowVerdict::kReject);
  mode("ipip");
  auto own = slice(80, {"10.42.1.1"});
  own.name.name = "web-own";
  cluster_.put(own);
  compile();
  EXPECT_THAT(test::eligible(cluster_.decide("198.51.100.9", "203.0.113.20", 80)),
              ElementsAre("10.42.1.1:80"));
}

// Strict: refused with the field path. Lenient: skipped, reported, never a default.
TEST_F(ModesTest, AModeTheServiceCannotHaveIsAFault) {
  EXPECT_THAT(faults(), IsEmpty());
  web_.ports[0].target_port = "8080";
  EXPECT_THAT(faults(), ElementsAre("metadata.annotations[sluice.dev/forwarding-mode]"));
  compile();
  EXPECT_EQ(cluster_.block("shop/web:http"), nullptr);
  EXPECT_THAT(cluster_.lines("service shop/web"),
              ElementsAre(HasSubstr("mode dr maps no port, and this Service maps each, such as 80 "
                                    "to targetPort 8080")));
}

TEST_F(ModesTest, OneMappedPortOfSeveralIsNoFaultOfTheService) {
  web_.ports[0].target_port = "8080";
  web_.ports.push_back({"tls", "TCP", 443, 0, "https", ""});
  EXPECT_THAT(faults(), IsEmpty());
}

TEST_F(ModesTest, NodePortsAloneCannotBeServed) {
  web_.type = "NodePort";
  web_.load_balancer_ingress.clear();
  web_.annotations.clear();
  web_.forwarding_mode = "ipip";
  EXPECT_THAT(faults(), ElementsAre("spec.forwardingMode"));
  web_.external_ips = {"203.0.113.21"};
  EXPECT_THAT(faults(), IsEmpty());
}

TEST_F(ModesTest, OuterSourcesComeFromTheConfiguration) {
  cluster_.config.tunnel_sources = {test::cidr("192.0.2.128/25"), test::cidr("fd00:2::/64")};
  compile();
  const core::NodePart& node = cluster_.compiled.table->node();
  EXPECT_EQ(node.v4.tunnel_sources, test::cidr("192.0.2.128/25"));
  EXPECT_EQ(node.v6.tunnel_sources, test::cidr("fd00:2::/64"));
}

}  // namespace
}  // namespace sluice::compile
