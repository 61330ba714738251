#include "conf/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "dataplane/core/fwd/text.h"

namespace sluice::conf {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kPort = "ports: [{name: net0, device: auto:eth1}]\n";

Config good(const std::string& text) {
  const auto config = parse(std::string(kPort) + text, "f.yaml");
  EXPECT_TRUE(config.has_value()) << config.error().message;
  return config.value_or(Config{});
}

TEST(Config, LeavesEveryDefaultThatTheFileDoesNotName) {
  Config expected;
  expected.ports.push_back({.name = "net0",
                            .device = "auto:eth1",
                            .kind = DeviceKind::kAuto,
                            .target = "eth1",
                            .addresses = {},
                            .routes = {},
                            .rss_key = {}});

  EXPECT_EQ(good(""), expected);
}

TEST(Config, TreatsASectionWithoutContentAsAllDefaults) {
  EXPECT_EQ(good("snat:\n  # addresses: []\ntimeouts:\n"), good(""));
}

// H-7, H-14, F97
TEST(Config, ReadsHealthz) {
  EXPECT_EQ(good("").healthz, (HealthzConfig{"0.0.0.0:10256", false}));
  EXPECT_EQ(good("healthz: {address: ''}\n").healthz.address, "");
  EXPECT_EQ(good("healthz: {address: '[::]:9', bind-hard-fail: true}\n").healthz,
            (HealthzConfig{"[::]:9", true}));
  EXPECT_EQ(good("healthz: {address: 192.0.2.1}\n").healthz.address, "192.0.2.1");
  EXPECT_EQ(good("sync-period: 1m\n").sync_period, seconds(60));
}

TEST(Config, ReadsHostMode) {
  EXPECT_EQ(good("").host_mode, std::nullopt);
  EXPECT_EQ(good("host-mode: none\n").host_mode, std::nullopt);
  EXPECT_EQ(good("host-mode: nftables\n").host_mode, Mode::kNftables);
}

// AD-1, H-14
TEST(Config, ReadsMetrics) {
  EXPECT_EQ(good("").metrics, (MetricsConfig{"127.0.0.1:10249", false}));
  EXPECT_EQ(good("metrics: {address: ':9', bind-hard-fail: true}\n").metrics,
            (MetricsConfig{":9", true}));
}

struct DeviceCase {
  const char* text;
  DeviceKind kind;
  const char* target;
};
class DeviceForms : public ::testing::TestWithParam<DeviceCase> {};

TEST_P(DeviceForms, AreToldApart) {
  const auto config =
      parse(std::string("ports: [{name: p, device: '") + GetParam().text + "'}]", "f.yaml");

  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->ports[0].kind, GetParam().kind);
  EXPECT_EQ(config->ports[0].target, GetParam().target);
}

INSTANTIATE_TEST_SUITE_P(
    Config, DeviceForms,
    ::testing::Values(
        DeviceCase{"0000:03:00.0", DeviceKind::kPci, "0000:03:00.0"},
        DeviceCase{"03:00.1", DeviceKind::kPci, "0000:03:00.1"},
        DeviceCase{"net_memif0,role=client,id=1", DeviceKind::kVdev, "net_memif0,role=client,id=1"},
        DeviceCase{"net_af_xdp0,iface=eth1", DeviceKind::kVdev, "net_af_xdp0,iface=eth1"},
        DeviceCase{"af_xdp:eth1", DeviceKind::kAfXdp, "eth1"},
        DeviceCase{"af_packet:veth-a", DeviceKind::kAfPacket, "veth-a"},
        DeviceCase{"auto:enp3s0f0", DeviceKind::kAuto, "enp3s0f0"}));

TEST(Config, KeepsTheHostBitsOfPortAddresses) {
  const auto config = parse(
      "ports:\n"
      "  - name: a\n"
      "    device: af_xdp:eth1\n"
      "    addresses: [192.0.2.2/24, '2001:db8::2/64']\n"
      "    routes:\n"
      "      - {to: default, via: 192.0.2.1}\n"
      "      - {to: '2001:db8:1::/48', via: '2001:db8::1'}\n",
      "f.yaml");

  ASSERT_TRUE(config.has_value()) << config.error().message;
  const PortConfig& port = config->ports[0];
  EXPECT_EQ(port.addresses[0], (InterfaceAddress{*core::parse_address("192.0.2.2"), 24}));
  EXPECT_EQ(port.addresses[1], (InterfaceAddress{*core::parse_address("2001:db8::2"), 64}));
  EXPECT_EQ(port.routes[0],
            (Route{*core::parse_cidr("0.0.0.0/0"), *core::parse_address("192.0.2.1")}));
  EXPECT_EQ(port.routes[1].to, *core::parse_cidr("2001:db8:1::/48"));
}

TEST(Config, ReadsSizesOfAPort) {
  const auto config = parse(
      "ports: [{name: a, device: '03:00.0', mtu: 9000, queues: 4, rx-descriptors: 256,\n"
      "         tx-descriptors: 512, rss-key: " +
          std::string(80, 'a') + "}]",
      "f.yaml");

  ASSERT_TRUE(config.has_value()) << config.error().message;
  const PortConfig& port = config->ports[0];
  EXPECT_EQ(port.mtu, 9000);
  EXPECT_EQ(port.queues, 4);
  EXPECT_EQ(port.rx_descriptors, 256);
  EXPECT_EQ(port.tx_descriptors, 512);
  EXPECT_EQ(port.rss_key, std::vector<std::uint8_t>(40, 0xaa));
}

TEST(Config, CountsWorkersByTheirCores) {
  const Config config = good("workers: {cores: [2, 0, 5]}\n");

  EXPECT_EQ(config.workers.count, 3u);
  EXPECT_THAT(config.workers.cores, ElementsAre(2u, 0u, 5u));
}

TEST(Config, GivesEveryWorkerItsIdleStrategy) {
  const Config one = good("workers: {count: 2, idle: spin}\n");
  const Config each = good("workers: {count: 2, idle: [spin, sleep]}\n");

  EXPECT_EQ(one.workers.idle_of(1), Idle::kSpin);
  EXPECT_EQ(each.workers.idle_of(0), Idle::kSpin);
  EXPECT_EQ(each.workers.idle_of(1), Idle::kSleep);
}

TEST(Config, AcceptsTableSizesUpToSixteenMillionConnections) {
  const Config config = good("tables: {connections: 16777216, handover-ring: 2048}\n");

  EXPECT_EQ(config.tables.connections, 16777216u);
  EXPECT_EQ(config.tables.handover_ring, 2048u);
}

TEST(Config, ReadsDurationsInEveryUnit) {
  const Config config = good("timeouts: {tcp-established: 2h, udp-stream: 5m, tcp-closed: 7s}\n");

  EXPECT_EQ(config.timeouts.tcp_established, seconds(7200));
  EXPECT_EQ(config.timeouts.udp_stream, seconds(300));
  EXPECT_EQ(config.timeouts.tcp_closed, seconds(7));
}

TEST(Config, ReadsTheNodeSection) {
  const Config config = good(
      "node:\n"
      "  name: gw-1\n"
      "  zone: z1\n"
      "  addresses: [192.0.2.2, '2001:db8::2']\n"
      "  detect-local: interface-name-prefix\n"
      "  interface-name-prefix: cali\n"
      "  cluster-cidrs: [10.244.0.0/16]\n"
      "  pod-cidrs: [10.244.3.0/24]\n"
      "  masquerade-all: true\n"
      "  masquerade-bit: 3\n"
      "  node-port-addresses: [192.0.2.0/24]\n"
      "  allow-service-external-ips: false\n");

  EXPECT_EQ(config.node.name, "gw-1");
  EXPECT_EQ(config.node.zone, "z1");
  EXPECT_EQ(config.node.addresses.size(), 2u);
  EXPECT_EQ(config.node.detect_local, DetectLocal::kInterfaceNamePrefix);
  EXPECT_EQ(config.node.pod_cidrs.front(), *core::parse_cidr("10.244.3.0/24"));
  EXPECT_TRUE(config.node.masquerade_all);
  EXPECT_EQ(config.node.masquerade_bit, 3);
  EXPECT_THAT(config.node.node_port_addresses, ElementsAre("192.0.2.0/24"));
  EXPECT_FALSE(config.node.allow_service_external_ips);
}

TEST(Config, KnowsEveryScheduler) {
  for (const core::SchedulerKind kind : core::kAllSchedulers) {
    const std::string name(core::name_of(kind));
    EXPECT_EQ(good("scheduler: " + name + "\n").scheduler, kind) << name;
  }
}

TEST(Config, ReadsMemoryEalSnatAndWords) {
  const Config config = good(
      "memory: {mbufs: 8192, hugepages: off, mib: 512}\n"
      "eal: {file-prefix: x, extra-args: ['--log-level=8', '-v']}\n"
      "snat: {addresses: [192.0.2.9], first-port: 2048, last-port: 9000}\n"
      "ipip: {sources: [192.0.2.128/25, '2001:db8:2::/64']}\n"
      "announce: [198.51.100.0/24]\n"
      "scheduler: rr\n"
      "log-level: debug\n"
      "state-dir: ''\n"
      "test-owner-map: inverted\n");

  EXPECT_EQ(config.memory, (MemoryConfig{8192, Hugepages::kOff, 512}));
  EXPECT_THAT(config.eal.extra_args, ElementsAre("--log-level=8", "-v"));
  EXPECT_EQ(config.snat.first_port, 2048);
  EXPECT_EQ(config.snat.last_port, 9000);
  EXPECT_EQ(config.announce.size(), 1u);
  EXPECT_THAT(config.ipip.sources, ElementsAre(*core::parse_cidr("192.0.2.128/25"),
                                               *core::parse_cidr("2001:db8:2::/64")));
  EXPECT_EQ(config.scheduler, core::SchedulerKind::kRr);
  EXPECT_EQ(config.log_level, LogLevel::kDebug);
  EXPECT_EQ(config.state_dir, "");
  EXPECT_EQ(config.test_owner_map, OwnerMap::kInverted);
  EXPECT_EQ(good("test-owner-map: last\n").test_owner_map, OwnerMap::kLast);
}

TEST(Config, AKernelModeNeedsNoPortsAndHasSettingsOfItsOwn) {
  const auto config = parse(
      "mode: nftables\n"
      "min-sync-period: 0s\n"
      "conntrack: {max-per-core: 0, udp-timeout: 30s, tcp-established-timeout: 0s, "
      "tcp-be-liberal: true}\n",
      "f.yaml");

  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->mode, Mode::kNftables);
  EXPECT_EQ(config->min_sync_period, std::chrono::seconds(0));
  EXPECT_EQ(config->conntrack.max_per_core, 0u);
  EXPECT_EQ(config->conntrack.udp_timeout, std::chrono::seconds(30));
  EXPECT_EQ(config->conntrack.tcp_established_timeout, std::chrono::seconds(0));
  EXPECT_TRUE(config->conntrack.tcp_be_liberal);
}

TEST(Config, ModeIptablesHasSettingsOfItsOwn) {
  const auto config =
      parse("mode: iptables\niptables: {variant: legacy, localhost-node-ports: false}\n", "f.yaml");

  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->mode, Mode::kIptables);
  EXPECT_EQ(config->iptables.variant, IptablesConfig::Variant::kLegacy);
  EXPECT_FALSE(config->iptables.localhost_node_ports);
}

TEST(Config, TheModeOfTheCommandLineWins) {
  const auto config = parse("log-level: debug\n", "f.yaml", Mode::kNftables);

  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->mode, Mode::kNftables);
  EXPECT_FALSE(config->min_sync_period.has_value());
}

// F97: what is written is what is used; nothing off loopback.
TEST(Config, TakesTheListenAddressAsItIsWritten) {
  for (const char* listen : {"unix:/run/x.sock", "127.0.0.1:9000", "127.0.0.2:1", "[::1]:65535"}) {
    EXPECT_EQ(good(std::string("listen: '") + listen + "'\n").listen, listen);
  }
}

TEST(Config, NamesAFileThatCannotBeRead) {
  const auto absent = load("/nonexistent/sluiced.yaml");
  const auto folder = load("/");

  ASSERT_FALSE(absent.has_value());
  EXPECT_THAT(absent.error().message,
              HasSubstr("/nonexistent/sluiced.yaml: cannot be read: No such"));
  ASSERT_FALSE(folder.has_value());
  EXPECT_THAT(folder.error().message, HasSubstr("/: cannot be read"));
}

}  // namespace
}  // namespace sluice::conf
