// Rules between fields of the configuration, and the listen address.

#include <algorithm>
#include <set>

#include "conf/loader.h"

namespace sluice::conf {
namespace {

void check_ports(Section& top, const Config& config) {
  if (config.ports.empty()) {
    top.fail("ports", "a list with at least one port is expected");
  }
  std::set<std::string> names;
  std::set<std::string> targets;
  for (const PortConfig& port : config.ports) {
    if (!names.insert(port.name).second) {
      top.fail("ports", "two ports are named " + port.name);
    }
    if (!targets.insert(port.target).second) {
      top.fail("ports", "two ports use the device " + port.device);
    }
    if (port.queues != 0 && port.queues < config.workers.count) {
      top.fail("ports", "port " + port.name + " has " + std::to_string(port.queues) +
                            " queues for " + std::to_string(config.workers.count) +
                            " workers; at least one per worker is expected");
    }
  }
}

void check_workers(Section& top, const Config& config) {
  const WorkersConfig& workers = config.workers;
  if (workers.idle.size() != 1 && workers.idle.size() != workers.count) {
    top.fail("workers", "idle: one word for all, or one per worker (" +
                            std::to_string(workers.count) + ") is expected, not " +
                            std::to_string(workers.idle.size()));
  }
  std::set<std::uint32_t> cores;
  for (const std::uint32_t core : workers.cores) {
    if (!cores.insert(core).second) {
      top.fail("workers", "cores: core " + std::to_string(core) + " is named twice");
    }
  }
}

void check_node(Section& top, const NodeSection& node) {
  if (node.detect_local == DetectLocal::kBridgeInterface && node.bridge_interface.empty()) {
    top.fail("node", "detect-local: bridge-interface needs the key bridge-interface");
  }
  if (node.detect_local == DetectLocal::kInterfaceNamePrefix &&
      node.interface_name_prefix.empty()) {
    top.fail("node", "detect-local: interface-name-prefix needs the key interface-name-prefix");
  }
  const auto& list = node.node_port_addresses;
  if (list.size() > 1 && std::count(list.begin(), list.end(), "primary") != 0) {
    top.fail("node", "node-port-addresses: primary stands alone or not at all");
  }
}

/// Ports are handed to the workers in whole blocks of 512.
void check_snat(Section& top, const Config& config) {
  constexpr std::uint32_t kBlock = 512;
  const SnatConfig& snat = config.snat;
  const std::uint32_t first = snat.first();
  const std::uint32_t last = snat.last();
  const std::uint32_t begin = (first + kBlock - 1) / kBlock;
  const std::uint32_t end = (last + 1) / kBlock;
  const std::uint32_t blocks = end > begin ? end - begin : 0;
  if (blocks < config.workers.count) {
    top.fail("snat", "ports " + std::to_string(first) + "-" + std::to_string(last) + " hold " +
                         std::to_string(blocks) + " whole blocks of 512; one per worker (" +
                         std::to_string(config.workers.count) + ") is expected");
  }
}

/// Kernel rules beside the workers masquerade to ports that are not the workers'.
void check_host_mode(Section& top, const Config& config) {
  constexpr std::uint32_t kLeast = 1024;
  if (!config.host_mode) {
    return;
  }
  if (config.mode != Mode::kDpdk) {
    top.fail("host-mode", "none is expected in a kernel mode, which has the host's own traffic");
    return;
  }
  const SnatConfig& snat = config.snat;
  if (snat.addresses.empty() && snat.first() < 1024 + kLeast && snat.last() > 65535 - kLeast) {
    top.fail("host-mode", "snat's ports leave none of the node's address to the host; " +
                              std::to_string(kLeast) + " below or above them are expected");
  }
}

void check_ipip(Section& top, const IpipConfig& ipip) {
  std::set<core::Family> families;
  for (const core::Cidr& prefix : ipip.sources) {
    if (!families.insert(prefix.family()).second) {
      top.fail("ipip", "sources: at most one prefix per family is expected");
    } else if (prefix.address().is_multicast() || prefix.address().is_loopback() ||
               prefix.length() < 8) {
      top.fail("ipip", "sources: " + core::to_string(prefix) +
                           " cannot be source addresses; a prefix that routes back here is "
                           "expected");
    }
  }
}

bool is_unix_address(std::string_view path) {
  constexpr std::size_t kMaxPath = 107;  // sun_path without the final NUL
  return path.size() > 1 && path.size() <= kMaxPath && path.front() == '/' && path.back() != '/';
}

}  // namespace

bool is_listen_address(std::string_view text) {
  constexpr std::string_view kUnix = "unix:";
  if (text.substr(0, kUnix.size()) == kUnix) {
    return is_unix_address(text.substr(kUnix.size()));
  }
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    return false;
  }
  const auto port = parse_number(text.substr(colon + 1));
  std::string_view host = text.substr(0, colon);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) {
    host = host.substr(1, host.size() - 2);
  }
  const auto address = core::parse_address(host);
  return address.has_value() && address->is_loopback() && address->is_v4() != bracketed &&
         port.has_value() && *port >= 1 && *port <= 65535;
}

void check_config(Section& top, const Config& config) {
  if (config.mode == Mode::kDpdk) {
    check_ports(top, config);
    check_workers(top, config);
  } else if (!config.ports.empty()) {
    top.fail("ports", "none is expected in a kernel mode");
  }
  check_node(top, config.node);
  if (config.mode == Mode::kDpdk) {
    check_snat(top, config);
  }
  check_host_mode(top, config);
  check_ipip(top, config.ipip);
  if (!is_listen_address(config.listen)) {
    top.fail("listen",
             "unix:/PATH, 127.0.0.1:PORT or [::1]:PORT is expected (other addresses need mutual "
             "TLS, which there is not yet)");
  }
  if (!config.state_dir.empty() && config.state_dir.front() != '/') {
    top.fail("state-dir", "an absolute path, or \"\" for none, is expected");
  }
}

}  // namespace sluice::conf
