#include "control/settings.h"

#include <unistd.h>

#include <array>

namespace sluice::daemon {
namespace {

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

compile::NodeConfig::DetectLocal detect_local(conf::DetectLocal detect) {
  using Detect = compile::NodeConfig::DetectLocal;
  switch (detect) {
    case conf::DetectLocal::kNodeCidr:
      return Detect::kNodeCidr;
    case conf::DetectLocal::kBridgeInterface:
      return Detect::kBridgeInterface;
    case conf::DetectLocal::kInterfaceNamePrefix:
      return Detect::kInterfaceNamePrefix;
    case conf::DetectLocal::kClusterCidr:
      break;
  }
  return Detect::kClusterCidr;
}

}  // namespace

compile::NodeConfig node_config(const conf::Config& config) {
  compile::NodeConfig node;
  node.node_name = config.node.name.empty() ? host_name() : config.node.name;
  node.zone = config.node.zone;
  node.node_addresses = config.node.addresses;
  node.detect_local = detect_local(config.node.detect_local);
  node.cluster_cidrs = config.node.detect_local == conf::DetectLocal::kNodeCidr
                           ? config.node.pod_cidrs
                           : config.node.cluster_cidrs;
  node.bridge_interface = config.node.bridge_interface;
  node.interface_name_prefix = config.node.interface_name_prefix;
  node.masquerade_all = config.node.masquerade_all;
  node.masquerade_bit = config.node.masquerade_bit;
  node.node_port_addresses = config.node.node_port_addresses;
  node.allow_service_external_ips = config.node.allow_service_external_ips;
  node.announce = config.announce;
  node.snat_addresses = config.snat.addresses;
  node.snat_first_port = config.snat.first_port;
  node.snat_last_port = config.snat.last_port;
  node.tunnel_sources = config.ipip.sources;
  node.default_scheduler = config.scheduler;
  return node;
}

kni::ConntrackSettings conntrack_settings(const conf::ConntrackConfig& config) {
  kni::ConntrackSettings settings;
  settings.max_per_core = config.max_per_core;
  settings.min = config.min;
  settings.tcp_established_timeout = config.tcp_established_timeout;
  settings.tcp_close_wait_timeout = config.tcp_close_wait_timeout;
  settings.udp_timeout = config.udp_timeout;
  settings.udp_stream_timeout = config.udp_stream_timeout;
  settings.tcp_be_liberal = config.tcp_be_liberal;
  return settings;
}

}  // namespace sluice::daemon
