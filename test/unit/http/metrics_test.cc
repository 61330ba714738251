// The admin server's pages over a real Publisher (AD-1, AD-2, N-5, H-8).

#include <atomic>
#include <cstdint>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/health_side.h"
#include "control/http/metrics_page.h"
#include "control/metrics_side.h"
#include "test/support/cluster_objects.h"
#include "test/support/fake_sink.h"
#include "test/support/http_client.h"

namespace sluice::http {
namespace {

using std::chrono::milliseconds;
using test::http_get;
using test::HttpAnswer;
using test::make_service;
using test::make_slice;
using test::make_state;
using testing::HasSubstr;
using testing::Not;

const core::IpAddress kLoopback = *core::parse_address("127.0.0.1");

TEST(MetricsPage, WritesEachMetricOnceSortedWithItsLines) {
  MetricsPage page;
  page.number(core::MetricKind::kGauge, "b", "A gauge.", "", 0.25);
  page.number(core::MetricKind::kCounter, "a_total", "A counter.", "code=\"200\"", 1795991077158);
  page.number(core::MetricKind::kCounter, "a_total", "A counter.", "code=\"503\"", 0);
  EXPECT_EQ(page.text(),
            "# HELP a_total A counter.\n# TYPE a_total counter\n"
            "a_total{code=\"200\"} 1795991077158\na_total{code=\"503\"} 0\n"
            "# HELP b A gauge.\n# TYPE b gauge\nb 0.25\n");
}

TEST(MetricsPage, ADurationIsInItsBucketAndAllLargerOnes) {
  core::DurationHistogram histogram;
  histogram.record(milliseconds(2));
  histogram.record(milliseconds(3));
  histogram.record(std::chrono::seconds(20));
  MetricsPage page;
  page.durations("d_seconds", "D.", "ip_family=\"IPv4\"", histogram);
  const std::string text = page.text();
  EXPECT_THAT(text, HasSubstr("# TYPE d_seconds histogram\n"));
  EXPECT_THAT(text, HasSubstr("d_seconds_bucket{ip_family=\"IPv4\",le=\"0.001\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("d_seconds_bucket{ip_family=\"IPv4\",le=\"0.002\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("d_seconds_bucket{ip_family=\"IPv4\",le=\"0.004\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("d_seconds_bucket{ip_family=\"IPv4\",le=\"16.384\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("d_seconds_bucket{ip_family=\"IPv4\",le=\"+Inf\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("d_seconds_sum{ip_family=\"IPv4\"} 20.005\n"));
  EXPECT_THAT(text, HasSubstr("d_seconds_count{ip_family=\"IPv4\"} 3\n"));
}

class MetricsTest : public testing::Test {
 protected:
  MetricsTest() {
    publish::Publisher::Options options;
    options.node.node_name = "here";
    options.now = [this] {
      return std::chrono::system_clock::time_point(std::chrono::seconds(now_));
    };
    const publish::SinkSlot slot{.sink = &sink_,
                                 .sync_period = milliseconds(20),
                                 .resync_period = milliseconds(20)};
    publisher_.emplace(std::move(options), std::vector<publish::SinkSlot>{slot}, nullptr);
    conf::Config config;
    config.mode = conf::Mode::kNftables;
    config.healthz.address = "";
    config.metrics.bind_hard_fail = true;
    config.metrics.address = "127.0.0.1:" + std::to_string(free_port());
    health_ = std::move(*daemon::HealthSide::start(config, *publisher_, {}));
    auto started = daemon::MetricsSide::start(config, *publisher_, *health_, {}, {});
    EXPECT_TRUE(started.has_value()) << started.error().message;
    metrics_ = std::move(*started);
    publisher_->start();
  }
  ~MetricsTest() override {
    metrics_.reset();
    health_.reset();
    publisher_->stop();
  }

  /// A port that was free a moment ago.
  static std::uint16_t free_port() {
    return (*HttpServer::create({}, {}))->listen(kLoopback, 0, {})->port;
  }
  [[nodiscard]] HttpAnswer ask(const char* path) const {
    return *http_get(kLoopback, metrics_->ports()[0], path);
  }
  /// One Service with a Local policy, and an endpoint elsewhere.
  static model::ClusterState cluster() {
    auto service = make_service("agent", "10.96.0.1");
    service.internal_traffic_policy = "Local";
    auto slice = make_slice("agent", "1", {"10.244.0.1"});
    slice.endpoints[0].node_name = "there";
    return make_state({service}, {slice});
  }
  void replace_and_wait() {
    const auto accepted = publisher_->replace(cluster());
    ASSERT_TRUE(accepted.has_value());
    ASSERT_TRUE(publisher_->wait_applied(accepted->version, std::chrono::seconds(10), {}));
  }

  test::FakeSink sink_;
  std::atomic<std::int64_t> now_{1'767'225'600};  ///< s; 2026-01-01T00:00:00Z
  std::optional<publish::Publisher> publisher_;
  std::unique_ptr<daemon::HealthSide> health_;
  std::unique_ptr<daemon::MetricsSide> metrics_;
};

TEST_F(MetricsTest, ServesTheModeAndHealth) {
  const HttpAnswer mode = ask("/proxyMode");
  EXPECT_EQ(mode.body, "nftables");
  EXPECT_EQ(mode.headers.at("content-type"), "text/plain; charset=utf-8");
  EXPECT_EQ(mode.headers.at("x-content-type-options"), "nosniff");
  EXPECT_EQ(ask("/healthz").body, "ok");
  EXPECT_EQ(ask("/debug/pprof/").status, 404);
}

// AD-1
TEST_F(MetricsTest, SaysItsConfigurationInTheWordsOfKubeProxy) {
  const HttpAnswer answer = ask("/configz");
  EXPECT_EQ(answer.headers.at("content-type"), "application/json");
  EXPECT_THAT(answer.body, testing::StartsWith("{\"kubeproxy.config.k8s.io\":{\"kind\":"
                                               "\"KubeProxyConfiguration\",\"apiVersion\":"
                                               "\"kubeproxy.config.k8s.io/v1alpha1\""));
  EXPECT_THAT(answer.body, HasSubstr("\"mode\":\"nftables\""));
  EXPECT_THAT(answer.body,
              HasSubstr("\"nftables\":{\"masqueradeBit\":14,\"masqueradeAll\":false,"
                        "\"syncPeriod\":\"30s\",\"minSyncPeriod\":\"1s\"}"));
  EXPECT_THAT(answer.body, HasSubstr("\"tcpEstablishedTimeout\":\"24h0m0s\""));
}

// SL-10
TEST_F(MetricsTest, SaysHowLongAChangeTookUntilItWasInForce) {
  model::ClusterState state = cluster();
  state.slices.begin()->second.annotations["endpoints.kubernetes.io/last-change-trigger-time"] =
      "2026-01-01T00:00:01Z";
  now_ += 3;
  const auto accepted = publisher_->replace(state);
  ASSERT_TRUE(accepted.has_value());
  ASSERT_TRUE(publisher_->wait_applied(accepted->version, std::chrono::seconds(10), {}));
  const auto counted = [&] {
    return publisher_->programming_durations(core::Family::kIpv4).count() == 1;
  };
  publish::Standing seen = publisher_->standing();
  while (!counted() && publisher_->wait_standing_change(seen, std::chrono::seconds(10), counted)) {
    seen = publisher_->standing();
  }
  const std::string text = ask("/metrics").body;
  EXPECT_THAT(text, HasSubstr("kubeproxy_network_programming_duration_seconds_count{"
                              "ip_family=\"IPv4\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("kubeproxy_network_programming_duration_seconds_sum{"
                              "ip_family=\"IPv4\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("kubeproxy_network_programming_duration_seconds_bucket{"
                              "ip_family=\"IPv4\",le=\"1\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("kubeproxy_network_programming_duration_seconds_bucket{"
                              "ip_family=\"IPv6\",le=\"0.25\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("le=\"300\""));
}

// N-5 and the counters of SY-3.
TEST_F(MetricsTest, SaysWhatChangedAndWhatHasNoLocalEndpoints) {
  replace_and_wait();
  const std::string text = ask("/metrics").body;
  EXPECT_THAT(text, HasSubstr("kubeproxy_sync_proxy_rules_service_changes_total 1\n"));
  EXPECT_THAT(text, HasSubstr("kubeproxy_sync_proxy_rules_endpoint_changes_total 1\n"));
  EXPECT_THAT(text, HasSubstr("kubeproxy_sync_proxy_rules_endpoint_changes_pending 0\n"));
  EXPECT_THAT(text, HasSubstr("kubeproxy_sync_proxy_rules_no_local_endpoints_total{"
                              "traffic_policy=\"internal\",ip_family=\"IPv4\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("kubeproxy_sync_proxy_rules_no_local_endpoints_total{"
                              "traffic_policy=\"external\",ip_family=\"IPv4\"} 0\n"));
  EXPECT_THAT(text, Not(HasSubstr("last_timestamp_seconds{ip_family=\"IPv4\"} 0\n")));
  EXPECT_THAT(text, HasSubstr("sluice_sink_failures_total{sink=\"fake\"} 0\n"));
}

TEST_F(MetricsTest, WhatTheSinkHasNotTakenIsPending) {
  sink_.behave([](int) { return "no"; });
  ASSERT_TRUE(publisher_->replace(cluster()).has_value());
  ASSERT_TRUE(sink_.wait_attempts(2));
  const std::string text = ask("/metrics").body;
  EXPECT_THAT(text, HasSubstr("kubeproxy_sync_proxy_rules_service_changes_pending 1\n"));
  EXPECT_THAT(text, HasSubstr("kubeproxy_sync_proxy_rules_last_timestamp_seconds{"
                              "ip_family=\"IPv4\"} 0\n"));
  EXPECT_THAT(text, Not(HasSubstr("sluice_sink_failures_total{sink=\"fake\"} 0\n")));
}

// H-8: rules that cannot be put right are not in force, though nothing has changed.
TEST_F(MetricsTest, ARepeatedApplyThatFailsCountsAsAChangeThatIsNotInForce) {
  replace_and_wait();
  EXPECT_FALSE(publisher_->standing().behind());
  const auto wait_for = [&](bool behind) {
    publish::Standing seen = publisher_->standing();
    while (seen.behind() != behind &&
           publisher_->wait_standing_change(seen, std::chrono::seconds(10), {})) {
      seen = publisher_->standing();
    }
    return seen.behind() == behind;
  };
  sink_.behave([](int) { return "flushed, and not ours to write any more"; });
  EXPECT_TRUE(wait_for(true));
  sink_.behave([](int) { return ""; });
  EXPECT_TRUE(wait_for(false));
}

// H-14
TEST_F(MetricsTest, ABusyAddressWithHardFailIsAnErrorThatNamesTheKey) {
  conf::Config config;
  config.metrics = {"127.0.0.1:" + std::to_string(metrics_->ports()[0]), true};
  const auto second = daemon::MetricsSide::start(config, *publisher_, *health_, {}, {});
  ASSERT_FALSE(second.has_value());
  EXPECT_THAT(second.error().message, HasSubstr("metrics.address"));
}

}  // namespace
}  // namespace sluice::http
