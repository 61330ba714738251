#include "control/configz.h"

#include <chrono>
#include <string_view>
#include <vector>

#include "control/http/health_pages.h"
#include "dataplane/core/net/address.h"

namespace sluice::daemon {
namespace {

/// A JSON object, field by field.
class Object {
 public:
  Object& text(std::string_view name, const std::string& value) {
    return raw(name, http::quoted(value));
  }
  Object& number(std::string_view name, std::uint64_t value) {
    return raw(name, std::to_string(value));
  }
  Object& flag(std::string_view name, bool value) { return raw(name, value ? "true" : "false"); }
  /// As Go writes durations: "24h0m0s", "1m30s", "30s".
  Object& duration(std::string_view name, std::chrono::seconds value) {
    const auto s = value.count();
    const std::string hours = s >= 3600 ? std::to_string(s / 3600) + "h" : "";
    const std::string minutes = s >= 60 ? std::to_string(s % 3600 / 60) + "m" : "";
    return text(name, hours + minutes + std::to_string(s % 60) + "s");
  }
  Object& list(std::string_view name, const std::vector<std::string>& values) {
    std::string out;
    for (const std::string& value : values) {
      out += (out.empty() ? "" : ",") + http::quoted(value);
    }
    return raw(name, "[" + out + "]");
  }
  Object& object(std::string_view name, const Object& value) { return raw(name, value.json()); }
  [[nodiscard]] std::string json() const { return "{" + fields_ + "}"; }

 private:
  Object& raw(std::string_view name, const std::string& value) {
    fields_ += (fields_.empty() ? "" : ",") + http::quoted(std::string(name)) + ":" + value;
    return *this;
  }
  std::string fields_;
};

const char* detect_local_mode(conf::DetectLocal detect) {
  switch (detect) {
    case conf::DetectLocal::kNodeCidr:
      return "NodeCIDR";
    case conf::DetectLocal::kBridgeInterface:
      return "BridgeInterface";
    case conf::DetectLocal::kInterfaceNamePrefix:
      return "InterfaceNamePrefix";
    case conf::DetectLocal::kClusterCidr:
      break;
  }
  return "ClusterCIDR";
}

std::string cluster_cidr(const conf::Config& config) {
  std::string out;
  for (const core::Cidr& cidr : config.node.cluster_cidrs) {
    out += (out.empty() ? "" : ",") + core::to_string(cidr);
  }
  return out;
}

/// What the sections of all modes have.
Object mode_section(const conf::Config& config) {
  Object out;
  out.number("masqueradeBit", config.node.masquerade_bit)
      .flag("masqueradeAll", config.node.masquerade_all)
      .duration("syncPeriod", config.sync_period)
      .duration("minSyncPeriod", config.min_sync());
  return out;
}

Object conntrack_section(const conf::ConntrackConfig& config) {
  Object out;
  out.number("maxPerCore", config.max_per_core)
      .number("min", config.min)
      .duration("tcpEstablishedTimeout", config.tcp_established_timeout)
      .duration("tcpCloseWaitTimeout", config.tcp_close_wait_timeout)
      .flag("tcpBeLiberal", config.tcp_be_liberal)
      .duration("udpTimeout", config.udp_timeout)
      .duration("udpStreamTimeout", config.udp_stream_timeout);
  return out;
}

}  // namespace

std::string configz(const conf::Config& config) {
  Object out;
  out.text("kind", "KubeProxyConfiguration")
      .text("apiVersion", "kubeproxy.config.k8s.io/v1alpha1")
      .object("featureGates",
              Object().flag("AllowServiceExternalIPs", config.node.allow_service_external_ips))
      .text("healthzBindAddress", config.healthz.address)
      .text("metricsBindAddress", config.metrics.address)
      .flag("bindAddressHardFail", config.healthz.bind_hard_fail || config.metrics.bind_hard_fail)
      .flag("enableProfiling", false)
      .text("hostnameOverride", config.node.name)
      .text("clusterCIDR", cluster_cidr(config))
      .text("mode", conf::name_of(config.mode))
      .object("iptables",
              mode_section(config).flag("localhostNodePorts", config.iptables.localhost_node_ports))
      .object("nftables", mode_section(config))
      .text("detectLocalMode", detect_local_mode(config.node.detect_local))
      .object("detectLocal", Object()
                                 .text("bridgeInterface", config.node.bridge_interface)
                                 .text("interfaceNamePrefix", config.node.interface_name_prefix))
      .list("nodePortAddresses", config.node.node_port_addresses)
      .object("conntrack", conntrack_section(config.conntrack));
  return Object().object("kubeproxy.config.k8s.io", out).json();
}

}  // namespace sluice::daemon
