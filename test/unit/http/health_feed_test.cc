// The wiring of sluiced (HealthSide over a real Publisher), asked over HTTP.

#include <gtest/gtest.h>

#include "control/health_side.h"
#include "test/support/cluster_objects.h"
#include "test/support/fake_sink.h"
#include "test/support/fake_worker_view.h"
#include "test/support/http_client.h"

namespace sluice::http {
namespace {

using test::http_get;
using test::make_service;
using test::make_slice;
using test::make_state;

const core::IpAddress kLoopback = *core::parse_address("127.0.0.1");

/// A port that was free a moment ago.
std::uint16_t free_port() {
  const auto probe = *HttpServer::create({}, {});
  return probe->listen(kLoopback, 0, {})->port;
}

class HealthFeedTest : public testing::Test {
 protected:
  HealthFeedTest() {
    publish::Publisher::Options options;
    options.node.node_name = "here";
    view_.set_workers({{.worker = 0, .running = true}});
    publisher_.emplace(std::move(options), std::vector<publish::SinkSlot>{{.sink = &sink_}},
                       &view_);
    conf::Config config;
    config.healthz.address = "127.0.0.1:" + std::to_string(port_);
    config.healthz.bind_hard_fail = true;
    auto started = daemon::HealthSide::start(config, *publisher_, {});
    EXPECT_TRUE(started.has_value()) << started.error().message;
    health_ = std::move(*started);
    publisher_->set_host_state({{{kLoopback, "lo"}}});
    publisher_->start();
  }
  ~HealthFeedTest() override { sink_.release(); }

  /// eTP Local with a health-check node port and one local endpoint.
  model::ClusterState cluster() const {
    auto service = make_service("edge", "10.96.0.1");
    service.type = "LoadBalancer";
    service.external_traffic_policy = "Local";
    service.ports[0].node_port = 30080;
    service.health_check_node_port = check_port_;
    auto slice = make_slice("edge", "1", {"10.244.0.1"});
    slice.endpoints[0].node_name = "here";
    auto state = make_state({service}, {slice});
    model::Node node;
    node.name = "here";
    node.addresses = {{"InternalIP", "127.0.0.1"}};
    state.nodes.emplace("here", node);
    return state;
  }
  /// Asks until the answer is `wanted` or 10 s have passed. 0: nobody listens. @return the last.
  static int ask(std::uint16_t port, const char* path, int wanted) {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    int status = -1;
    while (status != wanted && std::chrono::steady_clock::now() < give_up) {
      const auto answer = http_get(kLoopback, port, path);
      status = answer ? answer->status : 0;
    }
    return status;
  }

  const std::uint16_t port_ = free_port();
  const std::uint16_t check_port_ = free_port();
  test::FakeSink sink_;
  test::FakeWorkerView view_;
  std::optional<publish::Publisher> publisher_;
  std::unique_ptr<daemon::HealthSide> health_;
};

// H-10, H-11: alive before the first snapshot, but no target for load balancers yet.
TEST_F(HealthFeedTest, BeforeTheFirstSnapshotTheNodeIsUnknown) {
  EXPECT_EQ(ask(port_, "/livez", 200), 200);
  EXPECT_EQ(ask(port_, "/healthz", 503), 503);
  EXPECT_FALSE(http_get(kLoopback, check_port_, "/").has_value());
}

// H-3, H-6, H-11
TEST_F(HealthFeedTest, AnAppliedSnapshotOpensHealthzAndTheServicesPort) {
  ASSERT_TRUE(publisher_->replace(cluster()).has_value());

  EXPECT_EQ(ask(port_, "/healthz", 200), 200);
  EXPECT_EQ(ask(check_port_, "/", 200), 200);
}

// H-6: the table that is not applied opens nothing.
TEST_F(HealthFeedTest, TheServicesPortWaitsForTheSink) {
  sink_.hold();
  ASSERT_TRUE(publisher_->replace(cluster()).has_value());
  ASSERT_TRUE(sink_.wait_attempts(1));
  EXPECT_EQ(ask(port_, "/healthz", 200), 200);  // the node is known, the deadline far
  EXPECT_FALSE(http_get(kLoopback, check_port_, "/").has_value());

  sink_.release();

  EXPECT_EQ(ask(check_port_, "/", 200), 200);
}

// H-2, H-3, H-6
TEST_F(HealthFeedTest, TheServicesPortFollowsItsLocalEndpoints) {
  ASSERT_TRUE(publisher_->replace(cluster()).has_value());
  ASSERT_EQ(ask(check_port_, "/", 200), 200);

  model::Delta left;
  left.deleted_slices = {{"default", "edge-1"}};
  ASSERT_TRUE(publisher_->update(left).has_value());
  EXPECT_EQ(ask(check_port_, "/", 503), 503);

  model::Delta gone;
  gone.deleted_services = {{"default", "edge"}};
  ASSERT_TRUE(publisher_->update(gone).has_value());
  EXPECT_EQ(ask(check_port_, "/", 0), 0);
  EXPECT_EQ(ask(port_, "/healthz", 200), 200);
}

// H-3, H-11: a draining node is no target, its Services' ports still answer.
TEST_F(HealthFeedTest, ADrainingNodeFailsHealthzAlone) {
  ASSERT_TRUE(publisher_->replace(cluster()).has_value());
  ASSERT_EQ(ask(port_, "/healthz", 200), 200);

  model::Delta drain;
  drain.nodes = {cluster().nodes.at("here")};
  drain.nodes[0].taints = {{"ToBeDeletedByClusterAutoscaler", "", "NoSchedule"}};
  ASSERT_TRUE(publisher_->update(drain).has_value());

  EXPECT_EQ(ask(port_, "/healthz", 503), 503);
  EXPECT_EQ(ask(port_, "/livez", 200), 200);
  EXPECT_EQ(ask(check_port_, "/", 200), 200);
}

// F87
TEST_F(HealthFeedTest, AStoppedWorkerFailsAllThree) {
  ASSERT_TRUE(publisher_->replace(cluster()).has_value());
  ASSERT_EQ(ask(check_port_, "/", 200), 200);

  view_.set_workers({{.worker = 0, .running = false}});

  EXPECT_EQ(ask(port_, "/livez", 503), 503);
  EXPECT_EQ(ask(port_, "/healthz", 503), 503);
  EXPECT_EQ(ask(check_port_, "/", 503), 503);
  view_.set_workers({{.worker = 0, .running = true}});
  EXPECT_EQ(ask(port_, "/livez", 200), 200);
}

// H-14
TEST_F(HealthFeedTest, ABusyAddressWithHardFailIsAnErrorThatNamesTheKey) {
  conf::Config config;
  config.healthz = {"127.0.0.1:" + std::to_string(port_), true};

  const auto second = daemon::HealthSide::start(config, *publisher_, {});

  ASSERT_FALSE(second.has_value());
  EXPECT_NE(second.error().message.find("healthz.address"), std::string::npos);
}

}  // namespace
}  // namespace sluice::http
