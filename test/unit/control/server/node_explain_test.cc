// Node.Explain: hypothetical flows and flows that exist.
#include <gmock/gmock.h>

#include "dataplane/core/fwd/decide.h"
#include "test/support/control_fixture.h"

namespace sluice::server {
namespace {

using test::make_service;
using test::make_slice;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

class NodeExplainTest : public test::ControlFixture {
 protected:
  void publish(const model::ClusterState& state) {
    ASSERT_TRUE(publisher_->replace(state).has_value());
  }
  static v1::ExplainRequest question(const std::string& from, std::uint32_t port = 1234) {
    v1::ExplainRequest request;
    request.set_from(from);
    request.set_from_port(port);
    request.set_to("10.96.0.1");
    request.set_to_port(80);
    request.set_protocol("tcp");
    return request;
  }
  v1::ExplainResponse explain(const v1::ExplainRequest& request) {
    grpc::ClientContext context;
    v1::ExplainResponse response;
    const auto status = node_->Explain(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  static std::vector<std::string> lines(const v1::ExplainResponse& response) {
    std::vector<std::string> out;
    for (const auto& step : response.steps()) {
      out.push_back("[" + step.rule() + "] " + step.text());
    }
    return out;
  }
  static pipeline::ConnectionRow connection(std::uint16_t client_port, const char* backend) {
    pipeline::ConnectionRow row;
    row.flow = {*core::parse_address("192.0.2.1"), *core::parse_address("10.96.0.1"), client_port,
                80, core::Protocol::kTcp};
    row.backend = *core::parse_address(backend);
    row.backend_port = 80;
    row.snat = row.flow.src;
    row.snat_port = client_port;
    row.state = core::ConnState::kEstablished;
    row.mode = core::ForwardingMode::kNat;
    row.worker = 1;
    row.age_ms = 12000;
    return row;
  }
};

TEST_F(NodeExplainTest, AFlowThatDoesNotExistGetsTheVerdictOfANewOne) {
  view_.connection_rows = {connection(1, "10.1.0.1")};
  start();
  publish(test::make_state({make_service("web", "10.96.0.1")},
                           {make_slice("web", "1", {"10.1.0.1", "10.1.0.2"})}));
  const auto answer = explain(question("192.0.2.1"));
  EXPECT_EQ(answer.verdict(), "forward");
  EXPECT_EQ(answer.service(), "default/web");
  EXPECT_EQ(answer.frontend(), "ClusterIP");
  ASSERT_EQ(answer.endpoints_size(), 2);
  EXPECT_TRUE(answer.endpoints(0).candidate());
  EXPECT_EQ(answer.endpoints(0).mode(), "nat");
  EXPECT_FALSE(answer.has_connection());
  EXPECT_EQ(answer.generation(), publisher_->table()->generation());
  EXPECT_THAT(lines(answer), Not(Contains(HasSubstr("[SY-2]"))));
}

TEST_F(NodeExplainTest, AFlowThatExistsKeepsWhatItHas) {
  view_.connection_rows = {connection(1, "10.1.0.2"), connection(1234, "10.1.0.9")};
  start();
  publish(
      test::make_state({make_service("web", "10.96.0.1")}, {make_slice("web", "1", {"10.1.0.1"})}));
  const auto answer = explain(question("192.0.2.1"));
  ASSERT_TRUE(answer.has_connection());
  EXPECT_EQ(answer.connection().backend(), "10.1.0.9");
  EXPECT_THAT(
      lines(answer),
      Contains("[M-8] the flow exists for 12 s in state ESTABLISHED on worker 1: it stays on "
               "10.1.0.9:80, mode nat, where a new flow would not be sent any more"));
  EXPECT_EQ(answer.summary(),
            "forward to 10.1.0.9:80, mode nat, source kept, as the connection that exists");
}

TEST_F(NodeExplainTest, AnEndpointThatTheHostDeliversKeepsTheSource) {
  view_.delivered_by_host = {*core::parse_address("10.1.0.1")};
  start();
  auto service = make_service("web", "10.96.0.1");
  service.type = "LoadBalancer";
  service.load_balancer_ingress = {{"203.0.113.10", "", std::nullopt}};
  publish(test::make_state({service}, {make_slice("web", "1", {"10.1.0.1", "10.1.0.2"})}));
  auto request = question("192.0.2.1");
  request.set_to("203.0.113.10");
  const auto answer = explain(request);
  ASSERT_EQ(answer.endpoints_size(), 2);
  EXPECT_EQ(answer.endpoints(0).mode(), "nat");
  EXPECT_FALSE(answer.endpoints(0).masquerade());
  EXPECT_EQ(answer.endpoints(1).mode(), "fullnat");
  EXPECT_THAT(lines(answer), Contains(HasSubstr("[P-9] 10.1.0.1:8080 is delivered by this host")));
}

// The workers drop what comes from a Service's address: explain said "forward".
TEST_F(NodeExplainTest, ASourceThatIsAServiceAddressIsDroppedUnlessTheHostMadeIt) {
  view_.service_addresses = {*core::parse_address("10.96.0.7")};
  start();
  publish(
      test::make_state({make_service("web", "10.96.0.1")}, {make_slice("web", "1", {"10.1.0.1"})}));
  const auto answer = explain(question("10.96.0.7"));
  EXPECT_EQ(answer.verdict(), "drop");
  EXPECT_EQ(answer.summary(), "drop: in silence");
  EXPECT_THAT(lines(answer), Contains(HasSubstr("[rule_martian_source] 10.96.0.7 is an address")));
  EXPECT_EQ(explain(question("10.96.0.8")).verdict(), "forward");
  auto host = question("10.96.0.7");
  host.set_from_host(true);
  EXPECT_EQ(explain(host).verdict(), "forward");
  auto elsewhere = question("10.96.0.7");
  elsewhere.set_to("198.51.100.1");
  EXPECT_EQ(explain(elsewhere).verdict(), "pass");
}

TEST_F(NodeExplainTest, WithoutASourcePortNoWorkerIsNamed) {
  start();
  publish(test::make_state({make_service("web", "10.96.0.1")}, {}));
  const auto with = explain(question("192.0.2.1"));
  EXPECT_TRUE(with.has_worker());
  EXPECT_EQ(with.verdict(), "reject");
  const auto without = explain(question("192.0.2.1", 0));
  EXPECT_FALSE(without.has_worker());
  EXPECT_THAT(lines(without), Contains(HasSubstr("[owner] which worker depends on")));
}

TEST_F(NodeExplainTest, AnAddressOfTheNodeIsAHostProcessUnlessAnInterfaceIsNamed) {
  start();
  publisher_->set_host_state({{{*core::parse_address("192.0.2.11"), "eth0"}}});
  publish(test::make_state({make_service("web", "10.96.0.1")}, {}));
  EXPECT_THAT(lines(explain(question("192.0.2.11"))),
              Contains(HasSubstr("made by a process of this host")));
  EXPECT_THAT(lines(explain(question("192.0.2.1"))), Contains(HasSubstr("arriving by any")));
  auto named = question("192.0.2.11");
  named.set_interface("slc-front");
  EXPECT_THAT(lines(explain(named)), Contains(HasSubstr("arriving by slc-front")));
  auto host = question("192.0.2.1");
  host.set_from_host(true);
  EXPECT_THAT(lines(explain(host)), Contains(HasSubstr("made by a process of this host")));
}

TEST_F(NodeExplainTest, BadQuestionsAreRefusedByFieldOnOneLine) {
  start();
  publish(test::make_state({}, {}));
  const auto refused = [&](const v1::ExplainRequest& request) {
    grpc::ClientContext context;
    v1::ExplainResponse response;
    const auto status = node_->Explain(&context, request, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(status.error_message().find('\n'), std::string::npos);
    return status.error_message();
  };
  auto request = question("x\ny");
  EXPECT_EQ(refused(request), "from: \"x?y\" is no IP address");
  request = question("192.0.2.1", 70000);
  EXPECT_EQ(refused(request), "from: port 70000 is not in 1 to 65535");
  request = question("192.0.2.1");
  request.set_to_port(0);
  EXPECT_EQ(refused(request), "to: port 0 is not in 1 to 65535");
  request = question("192.0.2.1");
  request.set_to(std::string(1000, 'a'));
  EXPECT_LT(refused(request).size(), 100u);
  request = question("192.0.2.1");
  request.set_interface("eth0");
  request.set_from_host(true);
  EXPECT_EQ(refused(request), "interface: what a process of the host sends arrives by none");
}

}  // namespace
}  // namespace sluice::server
