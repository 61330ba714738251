// H-1..H-6 and F89: the set of listeners equals the wanted one after each sync.
#include "control/http/service_health.h"

#include <gtest/gtest.h>

#include "test/support/http_client.h"

namespace sluice::http {
namespace {

using test::http_get;

const core::IpAddress kLoopback = *core::parse_address("127.0.0.1");
const core::IpAddress kOther = *core::parse_address("127.0.0.2");
const model::ObjectName kEdge{"shop", "edge"};

class ServiceHealthTest : public ::testing::Test {
 protected:
  /// Ports that were free a moment ago.
  std::uint16_t free_port() {
    const auto listener = *http_->listen(core::IpAddress{}, 0, {});
    http_->close(listener.id);
    return listener.port;
  }
  compile::HealthPort wanted(std::uint16_t port, std::uint32_t endpoints,
                             model::ObjectName service = kEdge) {
    return {std::move(service), core::Family::kIpv4, port, endpoints};
  }
  int status(std::uint16_t port) {
    const auto answer = http_get(kLoopback, port, "/anything");
    return answer ? answer->status : 0;
  }

  bool healthy_ = true;
  std::unique_ptr<HttpServer> http_ = std::move(*HttpServer::create({}, {}));
  ServiceHealth health_{*http_, {{kLoopback, kOther}, {}}, [this] { return healthy_; }};
};

TEST_F(ServiceHealthTest, AnswersTheCountInHeaderAndBody) {
  const std::uint16_t port = free_port();
  EXPECT_TRUE(health_.reconcile({wanted(port, 2)}).empty());
  for (const core::IpAddress& address : {kLoopback, kOther}) {
    const auto answer = http_get(address, port, "/");
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(answer->status, 200);
    EXPECT_EQ(answer->headers.at("content-type"), "application/json");
    EXPECT_EQ(answer->headers.at("x-content-type-options"), "nosniff");
    EXPECT_EQ(answer->headers.at("x-load-balancing-endpoint-weight"), "2");
    EXPECT_NE(answer->body.find("\"localEndpoints\": 2"), std::string::npos);
  }
}

TEST_F(ServiceHealthTest, NoLocalEndpointIs503AndCountsFollow) {
  const std::uint16_t port = free_port();
  health_.reconcile({wanted(port, 0)});
  EXPECT_EQ(status(port), 503);
  health_.reconcile({wanted(port, 1)});
  EXPECT_EQ(status(port), 200);
}

// F88
TEST_F(ServiceHealthTest, ProxyThatIsNotHealthyIs503WithTheLastCount) {
  const std::uint16_t port = free_port();
  health_.reconcile({wanted(port, 3)});
  healthy_ = false;
  const auto answer = http_get(kLoopback, port, "/");
  EXPECT_EQ(answer->status, 503);
  EXPECT_EQ(answer->headers.at("x-load-balancing-endpoint-weight"), "3");
  EXPECT_NE(answer->body.find("\"serviceProxyHealthy\": false"), std::string::npos);
}

// F89
TEST_F(ServiceHealthTest, PortThatIsGoneOrChangedIsClosed) {
  const std::uint16_t first = free_port();
  health_.reconcile({wanted(first, 1)});
  const std::uint16_t second = free_port();
  health_.reconcile({wanted(second, 1)});
  EXPECT_EQ(status(first), 0);
  EXPECT_EQ(status(second), 200);
  health_.reconcile({});
  EXPECT_EQ(status(second), 0);
}

// F89: delete and create in one snapshot.
TEST_F(ServiceHealthTest, PortGoesFromOneServiceToAnotherInOneSync) {
  const std::uint16_t port = free_port();
  health_.reconcile({wanted(port, 1)});
  EXPECT_TRUE(health_.reconcile({wanted(port, 0, {"aaa", "new"})}).empty());
  const auto answer = http_get(kLoopback, port, "/");
  EXPECT_EQ(answer->status, 503);
  EXPECT_NE(answer->body.find("\"name\": \"new\""), std::string::npos);
}

// F89: equal names in two namespaces.
TEST_F(ServiceHealthTest, CountsBelongToTheRightService) {
  const std::uint16_t a = free_port();
  health_.reconcile({wanted(a, 1)});
  const std::uint16_t b = free_port();
  health_.reconcile({wanted(a, 1), wanted(b, 0, {"office", "edge"})});
  EXPECT_EQ(status(a), 200);
  EXPECT_EQ(status(b), 503);
}

// H-6
TEST_F(ServiceHealthTest, BusyPortIsReportedAndTriedAgain) {
  const auto other = *http_->listen(kOther, 0, [](const Request&) { return Response{}; });
  const auto failures = health_.reconcile({wanted(other.port, 1)});
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_EQ(failures[0].service, kEdge);
  EXPECT_NE(failures[0].reason.find("Address already in use"), std::string::npos);
  EXPECT_EQ(status(other.port), 0);  // all addresses or none
  http_->close(other.id);
  EXPECT_TRUE(health_.reconcile({wanted(other.port, 1)}).empty());
  EXPECT_EQ(status(other.port), 200);
}

// NP-7
TEST(NodePortBinds, MatchAllIsTheUnspecifiedAddress) {
  core::NodePart node;
  node.v4.node_ports.addresses = {kLoopback};
  node.v6.node_ports.match_all = true;
  const NodePortBinds binds = node_port_binds(node);
  EXPECT_EQ(binds.v4, std::vector{kLoopback});
  EXPECT_EQ(binds.v6, std::vector{core::IpAddress{core::Ipv6Address{}}});
}

}  // namespace
}  // namespace sluice::http
