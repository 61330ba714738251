#include "control/http/health_server.h"

#include <gtest/gtest.h>

#include <future>

#include "test/support/http_client.h"

namespace sluice::http {
namespace {

using std::chrono::seconds;
using test::http_get;

const core::IpAddress kLoopback = *core::parse_address("127.0.0.1");

/// A clock that tests move; read by the server's thread.
class TestClock {
 public:
  [[nodiscard]] std::function<Moment()> reader() const {
    return [ticks = ticks_] {
      const seconds at(ticks->load());
      return Moment{std::chrono::steady_clock::time_point(at),
                    std::chrono::system_clock::time_point(at)};
    };
  }
  void advance(seconds by) { ticks_->fetch_add(by.count()); }

 private:
  std::shared_ptr<std::atomic<std::int64_t>> ticks_ =
      std::make_shared<std::atomic<std::int64_t>>(1'700'000'000);
};

class HealthServerTest : public ::testing::Test {
 protected:
  HealthServer::Options options() {
    HealthServer::Options o;
    o.healthz = {{kLoopback}, 0};
    o.clock = clock_.reader();
    return o;
  }
  int get(const char* path) {
    return http_get(kLoopback, server_->healthz_ports()[0], path)->status;
  }

  TestClock clock_;
  model::Node node_;
  std::unique_ptr<HealthServer> server_;
};

// H-7, H-13
TEST_F(HealthServerTest, ServesItsTwoPathsAndCountsThem) {
  server_ = std::move(*HealthServer::create(options()));
  EXPECT_EQ(get("/livez"), 200);
  EXPECT_EQ(get("/healthz"), 503);  // the node is not known yet
  server_->set_node(&node_);
  EXPECT_EQ(get("/healthz"), 200);
  EXPECT_EQ(get("/metrics"), 404);
  EXPECT_EQ(server_->counts().healthz_200, 1u);
  EXPECT_EQ(server_->counts().healthz_503, 1u);
  EXPECT_EQ(server_->counts().livez_200, 1u);
}

// F88: 503 only once rules were in force and no longer are; liveness stays apart from the node.
TEST_F(HealthServerTest, ServicePortOpensWithTheFirstSuccessAndFollowsTheProxy) {
  server_ = std::move(*HealthServer::create(options()));
  const auto probe = *HttpServer::create({}, {});
  const auto free = *probe->listen(kLoopback, 0, {});
  probe->close(free.id);
  server_->requested();
  EXPECT_FALSE(http_get(kLoopback, free.port, "/").has_value());  // the first apply failed
  const std::vector<compile::HealthPort> ports{
      {{"shop", "edge"}, core::Family::kIpv4, free.port, 1}};
  ASSERT_TRUE(server_->succeeded(DataSource::kControlPlane, 1, {{kLoopback}, {}}, ports).empty());
  EXPECT_EQ(http_get(kLoopback, free.port, "/")->status, 200);
  server_->set_broken("worker 0 stopped");
  EXPECT_EQ(http_get(kLoopback, free.port, "/")->status, 503);
  server_->set_broken("");
  node_.deleting = true;
  server_->set_node(&node_);
  EXPECT_EQ(http_get(kLoopback, free.port, "/")->status, 200);
  EXPECT_EQ(get("/healthz"), 503);
  EXPECT_EQ(get("/livez"), 200);
}

TEST_F(HealthServerTest, PendingChangeTurnsItUnhealthyByTheClock) {
  server_ = std::move(*HealthServer::create(options()));
  server_->set_node(&node_);
  server_->succeeded(DataSource::kControlPlane, 1, {}, {});
  server_->requested();
  clock_.advance(seconds(60));
  EXPECT_EQ(get("/healthz"), 503);
  server_->succeeded(DataSource::kControlPlane, 2, {}, {});
  EXPECT_EQ(get("/healthz"), 200);
}

// F97, H-14
TEST_F(HealthServerTest, BusyAddressIsTriedAgainUntilItIsFree) {
  auto blocker = *HttpServer::create({}, {});
  const auto busy = *blocker->listen(kLoopback, 0, {});
  std::promise<std::string> told;
  HealthServer::Options o = options();
  o.healthz.port = busy.port;
  o.warn = [&](const std::string& line) { told.set_value(line); };  // once, or it throws
  server_ = std::move(*HealthServer::create(std::move(o)));
  EXPECT_NE(told.get_future().get().find("Address already in use"), std::string::npos);
  EXPECT_EQ(server_->healthz_ports(), std::vector<std::uint16_t>{0});
  blocker.reset();
  clock_.advance(seconds(5));
  const auto give_up = std::chrono::steady_clock::now() + seconds(10);
  while (server_->healthz_ports()[0] == 0 && std::chrono::steady_clock::now() < give_up) {
    std::this_thread::yield();
  }
  EXPECT_EQ(get("/livez"), 200);
}

// H-14
TEST_F(HealthServerTest, BusyAddressIsFatalWhenToldSo) {
  const auto blocker = *HttpServer::create({}, {});
  HealthServer::Options o = options();
  o.healthz.port = blocker->listen(kLoopback, 0, {})->port;
  o.bind_hard_fail = true;
  EXPECT_FALSE(HealthServer::create(std::move(o)).has_value());
}

TEST_F(HealthServerTest, NoAddressMeansOffButServicePortsWork) {
  HealthServer::Options o = options();
  o.healthz = *parse_bind_address("", kHealthzPort);
  server_ = std::move(*HealthServer::create(std::move(o)));
  EXPECT_TRUE(server_->healthz_ports().empty());
  EXPECT_TRUE(server_->succeeded(DataSource::kRestored, 1, {}, {}).empty());
}

// H-7: the documented default.
TEST(HealthServer, DefaultIsAllIpv4AddressesOnPort10256) {
  const auto address = *parse_bind_address(kHealthzAddress, kHealthzPort);
  EXPECT_EQ(address, (BindAddress{{core::IpAddress{}}, 10256}));
}

}  // namespace
}  // namespace sluice::http
