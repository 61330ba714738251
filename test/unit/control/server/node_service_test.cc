#include "control/server/node_service.h"

#include <gmock/gmock.h>

#include "test/support/control_fixture.h"

namespace sluice::server {
namespace {

using test::make_service;
using test::make_slice;
using testing::ElementsAre;
using testing::HasSubstr;

class NodeServiceTest : public test::ControlFixture {
 protected:
  void publish(const model::ClusterState& state) {
    const auto accepted = publisher_->replace(state);
    ASSERT_TRUE(accepted.has_value());
    ASSERT_TRUE(publisher_->wait_applied(accepted->version, std::chrono::seconds(10), {}));
  }
  v1::GetStatusResponse status() {
    grpc::ClientContext context;
    v1::GetStatusResponse response;
    EXPECT_TRUE(node_->GetStatus(&context, {}, &response).ok());
    return response;
  }
  std::vector<v1::ServiceRow> services(const std::string& name = "") {
    grpc::ClientContext context;
    v1::ListServicesRequest request;
    request.set_name(name);
    auto stream = node_->ListServices(&context, request);
    std::vector<v1::ServiceRow> rows;
    for (v1::ListServicesResponse page; stream->Read(&page);) {
      rows.insert(rows.end(), page.services().begin(), page.services().end());
    }
    EXPECT_TRUE(stream->Finish().ok());
    return rows;
  }
  std::vector<v1::BackendRow> backends() {
    grpc::ClientContext context;
    auto stream = node_->ListBackends(&context, {});
    std::vector<v1::BackendRow> rows;
    for (v1::ListBackendsResponse page; stream->Read(&page);) {
      rows.insert(rows.end(), page.backends().begin(), page.backends().end());
    }
    EXPECT_TRUE(stream->Finish().ok());
    return rows;
  }
  grpc::Status connections(const v1::ListConnectionsRequest& request,
                           std::vector<v1::ConnectionRow>& rows) {
    grpc::ClientContext context;
    auto stream = node_->ListConnections(&context, request);
    for (v1::ListConnectionsResponse page; stream->Read(&page);) {
      rows.insert(rows.end(), page.connections().begin(), page.connections().end());
    }
    return stream->Finish();
  }
  static pipeline::ConnectionRow row(const char* client) {
    pipeline::ConnectionRow row;
    row.flow = {*core::parse_address(client), *core::parse_address("10.96.0.1"), 1234, 80,
                core::Protocol::kTcp};
    row.backend = *core::parse_address("10.1.0.1");
    row.state = core::ConnState::kEstablished;
    row.mode = core::ForwardingMode::kNat;
    return row;
  }
};

TEST_F(NodeServiceTest, StatusBeforeTheFirstSnapshotSaysNone) {
  start();
  EXPECT_EQ(status().snapshot().source(), "none");
  EXPECT_TRUE(status().healthy());
  EXPECT_TRUE(services().empty());
}

TEST_F(NodeServiceTest, StatusShowsReceivedAndAppliedVersions) {
  start();
  publish(test::make_state({make_service("a", "10.96.0.1")}, {}));
  const auto now = status();
  EXPECT_EQ(now.version(), "test");
  EXPECT_EQ(now.snapshot().source(), "received");
  EXPECT_EQ(now.snapshot().services(), 1u);
  ASSERT_EQ(now.sinks_size(), 1);
  EXPECT_EQ(now.sinks(0).applied_version(), now.snapshot().version());
  EXPECT_EQ(now.workers_size(), 1);
}

TEST_F(NodeServiceTest, ListsAServiceWithFrontendsEndpointsAndConnections) {
  start();
  auto service = make_service("web", "10.96.0.1");
  service.type = "LoadBalancer";
  service.external_ips = {"192.0.2.5"};
  service.load_balancer_ingress = {{"192.0.2.6", "", {}}};
  service.ports[0].node_port = 30080;
  auto slice = make_slice("web", "1", {"10.1.0.1", "10.1.0.2"});
  slice.endpoints[1].ready = false;
  publish(test::make_state({service}, {slice}));
  for (const auto& endpoint : publisher_->table()->service(core::ServiceSlot{0})->endpoints) {
    view_.set_use(endpoint.id, {3, 10});
  }

  const auto rows = services();

  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].name(), "default/web");
  EXPECT_EQ(rows[0].type(), "LoadBalancer");
  EXPECT_EQ(rows[0].scheduler(), "random");
  EXPECT_EQ(rows[0].mode(), "rule");
  EXPECT_EQ(rows[0].endpoints_ready(), 1u);
  EXPECT_EQ(rows[0].endpoints_total(), 2u);
  EXPECT_EQ(rows[0].active_connections(), 6u);
  std::vector<std::string> frontends;
  for (const auto& frontend : rows[0].frontends()) {
    frontends.push_back(frontend.kind() + " " + frontend.address() + " " +
                        std::to_string(frontend.port()));
  }
  EXPECT_THAT(frontends, ElementsAre("ClusterIP 10.96.0.1 80", "ExternalIP 192.0.2.5 80",
                                     "LoadBalancer 192.0.2.6 80", "NodePort  30080"));
}

TEST_F(NodeServiceTest, ListsSchedulersWithFlagsTableAndWeights) {
  start();
  auto service = make_service("web", "10.96.0.1");
  service.scheduler = "mh";
  service.scheduler_flags = {"mh-port", "mh-fallback"};
  service.maglev_table_size = 1021;
  service.weights = {{"10.1.0.1", 0}, {"10.1.0.2", 7}};
  publish(test::make_state({service}, {make_slice("web", "1", {"10.1.0.1", "10.1.0.2"})}));
  const auto rows = services();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].scheduler(), "mh");
  EXPECT_THAT(rows[0].scheduler_flags(), ElementsAre("mh-port", "mh-fallback"));
  EXPECT_EQ(rows[0].maglev_table_size(), 1021u);
  const auto endpoints = backends();
  ASSERT_EQ(endpoints.size(), 2u);
  EXPECT_EQ(endpoints[0].weight(), 0u);
  EXPECT_EQ(endpoints[1].weight(), 7u);
}

TEST_F(NodeServiceTest, ListsEndpointsWithTheirState) {
  start();
  auto slice = make_slice("web", "1", {"10.1.0.1", "10.1.0.2", "10.1.0.3"});
  slice.endpoints[1].ready = false;
  slice.endpoints[1].serving = true;
  slice.endpoints[1].terminating = true;
  slice.endpoints[2].ready = false;
  slice.endpoints[2].serving = false;
  publish(test::make_state({make_service("web", "10.96.0.1")}, {slice}));
  std::vector<std::string> states;
  for (const auto& row : backends()) {
    states.push_back(row.address() + " " + row.state());
  }
  EXPECT_THAT(states, ElementsAre("10.1.0.1 ready", "10.1.0.2 draining", "10.1.0.3 not-ready"));
}

TEST_F(NodeServiceTest, ListsConnectionsFilteredAndLimited) {
  view_.connection_rows = {row("192.0.2.1"), row("192.0.2.2"), row("192.0.2.1")};
  start();
  v1::ListConnectionsRequest request;
  request.set_client("192.0.2.1");
  std::vector<v1::ConnectionRow> rows;
  ASSERT_TRUE(connections(request, rows).ok());
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].state(), "ESTABLISHED");
  EXPECT_EQ(rows[0].mode(), "nat");
  EXPECT_EQ(rows[0].client_port(), 1234u);

  rows.clear();
  request.set_limit(1);
  ASSERT_TRUE(connections(request, rows).ok());
  EXPECT_EQ(rows.size(), 1u);
}

TEST_F(NodeServiceTest, ABadFilterIsRefusedByName) {
  start();
  v1::ListConnectionsRequest request;
  request.set_backend("nowhere");
  std::vector<v1::ConnectionRow> rows;
  const auto refused = connections(request, rows);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(refused.error_message(), HasSubstr("backend: \"nowhere\""));
}

// F93
TEST_F(NodeServiceTest, ADumpOfManyConnectionsIsComplete) {
  view_.made_rows = 20000;
  start();
  std::vector<v1::ConnectionRow> rows;
  ASSERT_TRUE(connections({}, rows).ok());
  EXPECT_EQ(rows.size(), 20000u);
}

// F93: the client that stops reading loses its stream, the dump ends, others are served.
TEST_F(NodeServiceTest, AClientThatStopsReadingLosesItsStream) {
  view_.made_rows = UINT64_MAX;  // ends by the client only
  std::atomic<std::uint64_t> produced{0};
  view_.before_row = [&](std::uint64_t i) { produced = i; };
  options_.stalled_stream_limit = std::chrono::milliseconds(100);
  options_.max_dumps = 1;
  start();
  grpc::ClientContext context;
  auto stream = node_->ListConnections(&context, {});
  v1::ListConnectionsResponse page;
  ASSERT_TRUE(stream->Read(&page));
  EXPECT_TRUE(status().healthy());

  // One dump at a time: this one is let in when the stalled one has been ended.
  grpc::Status second(grpc::StatusCode::RESOURCE_EXHAUSTED, "");
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (second.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED &&
         std::chrono::steady_clock::now() < until) {
    v1::ListConnectionsRequest one;
    one.set_limit(1);
    std::vector<v1::ConnectionRow> rows;
    second = connections(one, rows);
  }
  EXPECT_TRUE(second.ok()) << second.error_message();
  EXPECT_LT(produced.load(), 1000000u);  // memory was bounded by flow control
}

TEST_F(NodeServiceTest, CountersAreNonZeroUnlessAllAreAsked) {
  view_.counter_rows = {{"rx_packets", "frames received", {3, 4}}, {"parse_bad", "bad", {0, 0}}};
  start();
  v1::GetCountersRequest request;
  v1::GetCountersResponse some;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(node_->GetCounters(&context, request, &some).ok());
  }
  ASSERT_EQ(some.counters_size(), 1);
  EXPECT_EQ(some.counters(0).total(), 7u);
  EXPECT_THAT(some.counters(0).per_worker(), ElementsAre(3, 4));
  request.set_all(true);
  grpc::ClientContext context;
  v1::GetCountersResponse all;
  ASSERT_TRUE(node_->GetCounters(&context, request, &all).ok());
  EXPECT_EQ(all.counters_size(), 2);
}

}  // namespace
}  // namespace sluice::server
