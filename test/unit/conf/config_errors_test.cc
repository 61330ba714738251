// F95, F97: every mistake in the file is one line with file, line, field and what is expected.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "conf/config.h"

namespace sluice::conf {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

struct Mistake {
  const char* text;   ///< follows the line that names a port
  const char* where;  ///< start of the message
  const char* what;   ///< part of the message
};

class Mistakes : public ::testing::TestWithParam<Mistake> {};

TEST_P(Mistakes, AreNamedWithFileLineAndField) {
  const auto config =
      parse("ports: [{name: net0, device: auto:eth1}]\n" + std::string(GetParam().text), "f.yaml");

  ASSERT_FALSE(config.has_value()) << GetParam().text;
  EXPECT_THAT(config.error().message, StartsWith(GetParam().where));
  EXPECT_THAT(config.error().message, HasSubstr(GetParam().what));
  EXPECT_THAT(config.error().message, Not(HasSubstr("\n")));
}

INSTANTIATE_TEST_SUITE_P(
    Types, Mistakes,
    ::testing::Values(
        Mistake{"node:\n  node-port-addresses: 127.0.0.0/8\n",
                "f.yaml:3: node.node-port-addresses: ",
                "a list such as [127.0.0.0/8] is expected, not \"127.0.0.0/8\""},
        Mistake{"announce:\n",
                "f.yaml:2: announce: ", "a list such as [] is expected, not nothing"},
        Mistake{"announce: {a: 1}\n", "f.yaml:2: announce: ", "a list"},
        Mistake{"workers: 2\n", "f.yaml:2: workers: ", "indented \"key: value\" lines"},
        Mistake{"workers: {count: two}\n", "f.yaml:2: workers.count: ", "1..128"},
        Mistake{"workers: {count: '2'}\n", "f.yaml:2: workers.count: ", "1..128"},
        Mistake{"workers: {count: [2]}\n", "f.yaml:2: workers.count: ", "not a list"},
        Mistake{"workers: {count: 2.5}\n", "f.yaml:2: workers.count: ", "whole number"},
        Mistake{"workers: {count: 0x2}\n", "f.yaml:2: workers.count: ", "whole number"},
        Mistake{"workers: {count: 007}\n", "f.yaml:2: workers.count: ", "whole number"},
        Mistake{"node: {masquerade-all: yes}\n",
                "f.yaml:2: node.masquerade-all: ", "true or false is expected, not \"yes\""},
        Mistake{"node: {name: [a]}\n", "f.yaml:2: node.name: ", "a text is expected"},
        Mistake{"timeouts:\n  udp-new: 30\n",
                "f.yaml:3: timeouts.udp-new: ", "a duration with a unit"},
        Mistake{"timeouts:\n  udp-new: 0s\n", "f.yaml:3: timeouts.udp-new: ", "1s..24h"},
        Mistake{"timeouts:\n  udp-new: 25h\n", "f.yaml:3: timeouts.udp-new: ", "1s..24h"},
        Mistake{"timeouts:\n  udp-new: 1.5m\n", "f.yaml:3: timeouts.udp-new: ", "unit"},
        Mistake{"ipip: {sources: 192.0.2.0/25}\n",
                "f.yaml:2: ipip.sources: ", "a list such as [192.0.2.0/25] is expected"},
        Mistake{"ipip: {sources: [192.0.2.0/25, 198.51.100.0/24]}\n",
                "f.yaml:2: ipip: ", "at most one prefix per family"},
        Mistake{"ipip: {sources: [224.0.0.0/8]}\n", "f.yaml:2: ipip: ", "cannot be source"},
        Mistake{"ipip: {source: []}\n", "f.yaml:2: ipip.source: ", ""},
        Mistake{"listen:\n", "f.yaml:2: listen: ", "not nothing"}));

INSTANTIATE_TEST_SUITE_P(
    Keys, Mistakes,
    ::testing::Values(Mistake{"worker: {count: 2}\n",
                              "f.yaml:2: worker: ", "unknown key; known here: mode, host-mode, ports"},
                      Mistake{"workers:\n  count: 2\n  core: [1]\n",
                              "f.yaml:4: workers.core: ", "known here: count, cores, idle"},
                      Mistake{"workers: {count: 2}\nworkers: {count: 3}\n",
                              "f.yaml:3: ", "duplicate key"},
                      Mistake{"\"a\\nb\": 1\n", "f.yaml:2: a b: ", "unknown key"},
                      Mistake{"Workers: {count: 2}\n", "f.yaml:2: Workers: ", "unknown key"}));

INSTANTIATE_TEST_SUITE_P(
    Values, Mistakes,
    ::testing::Values(
        Mistake{"mode: ipvs\n", "f.yaml:2: mode: ", "no kernel mode ipvs"},
        Mistake{"iptables: {variant: ebtables}\n", "f.yaml:2: iptables.variant: ",
                "one of auto, legacy, nft"},
        Mistake{"mode: fast\n", "f.yaml:2: mode: ", "dpdk, nftables or iptables is expected, not \"fast\""},
        Mistake{"mode: nftables\n", "f.yaml:1: ports: ", "none is expected in a kernel mode"},
        Mistake{"min-sync-period: 5\n", "f.yaml:2: min-sync-period: ", "0s..24h"},
        Mistake{"conntrack: {udp-timeout: never}\n", "f.yaml:2: conntrack.udp-timeout: ", "0s..24h"},
        Mistake{"workers: {count: 0}\n", "f.yaml:2: workers.count: ", "1..128"},
        Mistake{"workers: {count: 129}\n", "f.yaml:2: workers.count: ", "1..128"},
        Mistake{"workers: {cores: [1, 1]}\n", "f.yaml:2: workers: ", "core 1 is named twice"},
        Mistake{"workers: {cores: [1, -1]}\n",
                "f.yaml:2: workers.cores[1]: ", "the number of a CPU"},
        Mistake{"workers: {cores: [1-4]}\n", "f.yaml:2: workers.cores[0]: ", "the number of a CPU"},
        Mistake{"workers: {count: 1, cores: [1, 2]}\n", "f.yaml:2: workers.count: ", "differs"},
        Mistake{"workers: {count: 3, idle: [spin, spin]}\n",
                "f.yaml:2: workers: ", "one per worker"},
        Mistake{"workers: {idle: []}\n", "f.yaml:2: workers.idle: ", "auto, spin, yield, sleep"},
        Mistake{"workers: {idle: busy}\n", "f.yaml:2: workers.idle: ", "not \"busy\""},
        Mistake{"memory: {hugepages: maybe}\n", "f.yaml:2: memory.hugepages: ", "auto, on, off"},
        Mistake{"memory: {mib: 63}\n", "f.yaml:2: memory.mib: ", "64..1048576 or auto"},
        Mistake{"memory: {mbufs: 99999999999999999999}\n", "f.yaml:2: memory.mbufs: ", "or auto"},
        Mistake{"tables: {connections: 0}\n", "f.yaml:2: tables.connections: ", "1024..67108864"},
        Mistake{"tables: {handover-ring: 1000}\n",
                "f.yaml:2: tables.handover-ring: ", "power of two"},
        Mistake{"node: {addresses: [10.0.0.256]}\n",
                "f.yaml:2: node.addresses[0]: ", "an IP address is expected, not \"10.0.0.256\""},
        Mistake{"node: {cluster-cidrs: [10.0.0.0]}\n", "f.yaml:2: node.cluster-cidrs[0]: ", "CIDR"},
        Mistake{"node: {detect-local: magic}\n", "f.yaml:2: node.detect-local: ", "cluster-cidr"},
        Mistake{"node: {detect-local: bridge-interface}\n", "f.yaml:2: node: ", "needs the key"},
        Mistake{"node: {node-port-addresses: [primary, 10.0.0.0/8]}\n",
                "f.yaml:2: node: ", "primary stands alone"},
        Mistake{"node: {masquerade-bit: 32}\n", "f.yaml:2: node.masquerade-bit: ", "0..31"},
        Mistake{"announce: [[a]]\n", "f.yaml:2: announce[0]: ", "not a list"},
        Mistake{"snat: {first-port: 65000}\nworkers: {count: 2}\n",
                "f.yaml:2: snat: ", "hold 1 whole blocks"},
        Mistake{"snat: {first-port: 65100}\n", "f.yaml:2: snat: ", "hold 0 whole blocks"},
        Mistake{"snat: {first-port: 5000, last-port: 4000}\n",
                "f.yaml:2: snat: ", "0 whole blocks"},
        Mistake{"scheduler: fastest\n", "f.yaml:2: scheduler: ", "random, wrandom, rr, wrr"},
        Mistake{"log-level: loud\n", "f.yaml:2: log-level: ", "trace, debug, info, warn, error"},
        Mistake{"state-dir: var/lib\n", "f.yaml:2: state-dir: ", "absolute path"},
        Mistake{"eal: {file-prefix: a/b}\n", "f.yaml:2: eal.file-prefix: ", "without /"}));

// F97.
INSTANTIATE_TEST_SUITE_P(
    Listen, Mistakes,
    ::testing::Values(Mistake{"listen: 0.0.0.0:9000\n", "f.yaml:2: listen: ", "mutual TLS"},
                      Mistake{"listen: '[::]:9000'\n", "f.yaml:2: listen: ", "127.0.0.1:PORT"},
                      Mistake{"listen: 127.0.0.1\n", "f.yaml:2: listen: ", "127.0.0.1:PORT"},
                      Mistake{"listen: ':9000'\n", "f.yaml:2: listen: ", "127.0.0.1:PORT"},
                      Mistake{"listen: '9000'\n", "f.yaml:2: listen: ", "127.0.0.1:PORT"},
                      Mistake{"listen: '::1:9000'\n", "f.yaml:2: listen: ", "[::1]:PORT"},
                      Mistake{"listen: '[127.0.0.1]:9000'\n", "f.yaml:2: listen: ", "127.0.0.1"},
                      Mistake{"listen: 127.0.0.1:http\n", "f.yaml:2: listen: ", "PORT"},
                      Mistake{"listen: 127.0.0.1:0\n", "f.yaml:2: listen: ", "PORT"},
                      Mistake{"listen: 127.0.0.1:65536\n", "f.yaml:2: listen: ", "PORT"},
                      Mistake{"listen: localhost:9000\n", "f.yaml:2: listen: ", "PORT"},
                      Mistake{"listen: ''\n", "f.yaml:2: listen: ", "unix:/PATH"},
                      Mistake{"listen: unix:run/x\n", "f.yaml:2: listen: ", "unix:/PATH"}));

// F97.
INSTANTIATE_TEST_SUITE_P(
    Health, Mistakes,
    ::testing::Values(
        Mistake{"host-mode: dpdk\n", "f.yaml:2: host-mode: ", "kernel mode"},
        Mistake{"host-mode: nftables\nsnat: {first-port: 1024}\n", "f.yaml:2: host-mode: ",
                "below or above"},
        Mistake{"healthz: {address: localhost:1}\n", "f.yaml:2: healthz.address: ", "IP address"},
        Mistake{"healthz: {address: '10.0.0.1:0'}\n", "f.yaml:2: healthz.address: ", "PORT"},
        Mistake{"healthz: {address: '10.0.0.1:x'}\n", "f.yaml:2: healthz.address: ", "PORT"},
        Mistake{"metrics: {address: localhost:1}\n", "f.yaml:2: metrics.address: ", "IP address"},
        Mistake{"healthz: {bind-hard-fail: 1}\n", "f.yaml:2: healthz.bind-hard-fail: ", "true"},
        Mistake{"healthz: {port: 1}\n", "f.yaml:2: healthz.port: ", "known here: address"},
        Mistake{"healthz: 0.0.0.0:1\n", "f.yaml:2: healthz: ", "indented"},
        Mistake{"sync-period: 30\n", "f.yaml:2: sync-period: ", "a duration with a unit"},
        Mistake{"sync-period: 0s\n", "f.yaml:2: sync-period: ", "1s..24h"}));

struct PortMistake {
  const char* fields;
  const char* where;
  const char* what;
};
class PortMistakes : public ::testing::TestWithParam<PortMistake> {};

TEST_P(PortMistakes, AreNamedWithTheirPort) {
  const auto config = parse("ports:\n  - " + std::string(GetParam().fields), "f.yaml");

  ASSERT_FALSE(config.has_value()) << GetParam().fields;
  EXPECT_THAT(config.error().message, StartsWith(GetParam().where));
  EXPECT_THAT(config.error().message, HasSubstr(GetParam().what));
}

INSTANTIATE_TEST_SUITE_P(
    Ports, PortMistakes,
    ::testing::Values(
        PortMistake{"{device: auto:eth1}", "f.yaml:2: ports[0].name: ", "1 to 11 characters"},
        PortMistake{"{name: a_b, device: auto:eth1}", "f.yaml:2: ports[0].name: ", "a-z, 0-9"},
        PortMistake{"{name: abcdefghijkl, device: auto:e}", "f.yaml:2: ports[0].name: ", "1 to 11"},
        PortMistake{"{name: a}", "f.yaml:2: ports[0].device: ", "a PCI address"},
        PortMistake{"{name: a, device: eth1}", "f.yaml:2: ports[0].device: ", "auto:IFNAME"},
        PortMistake{"{name: a, device: 'auto:'}", "f.yaml:2: ports[0].device: ", "auto:IFNAME"},
        PortMistake{"{name: a, device: 'auto:averyveryverylongname'}",
                    "f.yaml:2: ports[0].device: ", "IFNAME"},
        PortMistake{"{name: a, device: '0000:03:00.8'}", "f.yaml:2: ports[0].device: ", "PCI"},
        PortMistake{"{name: a, device: net_}", "f.yaml:2: ports[0].device: ", "vdev"},
        PortMistake{"{name: a, device: auto:e, mtu: 1000}",
                    "f.yaml:2: ports[0].mtu: ", "1280..9600"},
        PortMistake{"name: a\n    device: auto:e\n    rx-descriptors: 1000\n",
                    "f.yaml:4: ports[0].rx-descriptors: ", "power of two"},
        PortMistake{"{name: a, device: auto:e, rss-key: abc}",
                    "f.yaml:2: ports[0].rss-key: ", "40 or 52 bytes"},
        PortMistake{"{name: a, device: auto:e, addresses: 10.0.0.1/24}",
                    "f.yaml:2: ports[0].addresses: ", "[10.0.0.1/24]"},
        PortMistake{"{name: a, device: auto:e, addresses: [10.0.0.1]}",
                    "f.yaml:2: ports[0].addresses[0]: ", "prefix length"},
        PortMistake{"{name: a, device: auto:e, addresses: [10.0.0.1/33]}",
                    "f.yaml:2: ports[0].addresses[0]: ", "prefix length"},
        PortMistake{"{name: a, device: auto:e, routes: [{to: default}]}",
                    "f.yaml:2: ports[0].routes[0].via: ", "an IP address"},
        PortMistake{"{name: a, device: auto:e, routes: [{to: '::/0', via: 10.0.0.1}]}",
                    "f.yaml:2: ports[0].routes[0].to: ", "family"},
        PortMistake{"{name: a, device: auto:e, speed: 10}",
                    "f.yaml:2: ports[0].speed: ", "unknown key; known here: name, device"},
        PortMistake{"auto:eth1", "f.yaml:2: ports[0]: ", "indented \"key: value\" lines"},
        PortMistake{"{name: a, device: auto:e}\n  - {name: a, device: auto:f}",
                    "f.yaml:1: ports: ", "two ports are named a"},
        PortMistake{"{name: a, device: auto:e}\n  - {name: b, device: af_xdp:e}",
                    "f.yaml:1: ports: ", "two ports use the device af_xdp:e"},
        PortMistake{"{name: a, device: auto:e, queues: 1}\nworkers: {count: 2}\n",
                    "f.yaml:1: ports: ", "port a has 1 queues for 2 workers"}));

TEST(ConfigErrors, AFileWithoutPortsIsRefused) {
  const auto config = parse("mode: dpdk\n", "f.yaml");

  ASSERT_FALSE(config.has_value());
  EXPECT_EQ(config.error().message, "f.yaml:1: ports: a list with at least one port is expected");
}

}  // namespace
}  // namespace sluice::conf
