#include "test/conformance/object_reader.h"

#include <utility>

namespace sluice::conformance {
namespace {

std::string text(const YAML::Node& yaml, const char* key) {
  const YAML::Node value = yaml[key];
  return value && !value.IsNull() ? value.as<std::string>() : std::string();
}

std::optional<std::string> maybe_text(const YAML::Node& yaml, const char* key) {
  const YAML::Node value = yaml[key];
  return value && !value.IsNull() ? std::optional(value.as<std::string>()) : std::nullopt;
}

std::int64_t number(const YAML::Node& yaml, const char* key) {
  const YAML::Node value = yaml[key];
  return value && !value.IsNull() ? value.as<std::int64_t>() : 0;
}

std::optional<bool> maybe_bool(const YAML::Node& yaml, const char* key) {
  const YAML::Node value = yaml[key];
  return value && !value.IsNull() ? std::optional(value.as<bool>()) : std::nullopt;
}

std::map<std::string, std::string> string_map(const YAML::Node& yaml) {
  std::map<std::string, std::string> out;
  for (const auto& pair : yaml) {
    out[pair.first.as<std::string>()] = pair.second.IsNull() ? "" : pair.second.as<std::string>();
  }
  return out;
}

model::ObjectName name_of(const YAML::Node& metadata) {
  return {text(metadata, "namespace"), text(metadata, "name")};
}

void read_spec(const YAML::Node& spec, model::Service& s) {
  s.type = text(spec, "type");
  s.cluster_ip = text(spec, "clusterIP");
  s.cluster_ips = read_strings(spec["clusterIPs"]);
  s.ip_families = read_strings(spec["ipFamilies"]);
  s.external_ips = read_strings(spec["externalIPs"]);
  s.load_balancer_source_ranges = read_strings(spec["loadBalancerSourceRanges"]);
  s.external_traffic_policy = text(spec, "externalTrafficPolicy");
  s.internal_traffic_policy = maybe_text(spec, "internalTrafficPolicy");
  s.session_affinity = text(spec, "sessionAffinity");
  s.health_check_node_port = number(spec, "healthCheckNodePort");
  s.traffic_distribution = text(spec, "trafficDistribution");
  if (const YAML::Node c = spec["sessionAffinityConfig"]; c && c["clientIP"]) {
    if (const YAML::Node t = c["clientIP"]["timeoutSeconds"]; t && !t.IsNull()) {
      s.affinity_timeout_seconds = t.as<std::int64_t>();
    }
  }
  for (const YAML::Node& p : spec["ports"]) {
    s.ports.push_back({text(p, "name"), text(p, "protocol"), number(p, "port"),
                       number(p, "nodePort"), text(p, "targetPort"), text(p, "appProtocol")});
  }
}

model::SliceEndpoint read_endpoint(const YAML::Node& yaml) {
  model::SliceEndpoint e;
  e.addresses = read_strings(yaml["addresses"]);
  e.node_name = maybe_text(yaml, "nodeName");
  e.zone = maybe_text(yaml, "zone");
  if (const YAML::Node c = yaml["conditions"]; c && !c.IsNull()) {
    e.ready = maybe_bool(c, "ready");
    e.serving = maybe_bool(c, "serving");
    e.terminating = maybe_bool(c, "terminating");
  }
  if (const YAML::Node h = yaml["hints"]; h && !h.IsNull()) {
    for (const YAML::Node& z : h["forZones"]) {
      e.for_zones.push_back(text(z, "name"));
    }
    for (const YAML::Node& n : h["forNodes"]) {
      e.for_nodes.push_back(text(n, "name"));
    }
  }
  return e;
}

void read_config(const YAML::Node& yaml, NodeSetup& setup) {
  compile::NodeConfig& c = setup.config;
  using Detect = compile::NodeConfig::DetectLocal;
  const std::map<std::string, Detect> modes = {
      {"ClusterCIDR", Detect::kClusterCidr},
      {"NodeCIDR", Detect::kNodeCidr},
      {"BridgeInterface", Detect::kBridgeInterface},
      {"InterfaceNamePrefix", Detect::kInterfaceNamePrefix}};
  if (const auto at = modes.find(text(yaml, "detectLocalMode")); at != modes.end()) {
    c.detect_local = at->second;
  }
  for (const std::string& cidr : read_strings(yaml["clusterCIDRs"])) {
    if (const auto parsed = core::parse_cidr(cidr)) {
      c.cluster_cidrs.push_back(*parsed);
    }
  }
  c.bridge_interface = text(yaml, "bridgeInterface");
  c.interface_name_prefix = text(yaml, "interfaceNamePrefix");
  c.masquerade_all = maybe_bool(yaml, "masqueradeAll").value_or(false);
  c.node_port_addresses = read_strings(yaml["nodePortAddresses"]);
  setup.localhost_node_ports = maybe_bool(yaml, "localhostNodePorts").value_or(true);
  if (const YAML::Node gates = yaml["featureGates"]) {
    c.allow_service_external_ips = maybe_bool(gates, "AllowServiceExternalIPs").value_or(true);
  }
  setup.service_cidrs = read_strings(yaml["serviceCIDRs"]);
  if (const YAML::Node period = yaml["syncPeriod"]) {
    setup.sync_period_seconds = period.as<int>();
  }
}

}  // namespace

std::vector<std::string> read_strings(const YAML::Node& yaml) {
  std::vector<std::string> out;
  for (const YAML::Node& item : yaml) {
    out.push_back(item.as<std::string>());
  }
  return out;
}

YAML::Node overlay(const YAML::Node& base, const YAML::Node& over) {
  YAML::Node out = YAML::Clone(base);
  for (const auto& pair : over) {
    out[pair.first.as<std::string>()] = pair.second;
  }
  return out;
}

model::Service read_service(const YAML::Node& yaml) {
  model::Service s;
  const YAML::Node metadata = yaml["metadata"];
  s.name = name_of(metadata);
  s.labels = string_map(metadata["labels"]);
  s.annotations = string_map(metadata["annotations"]);
  if (const YAML::Node spec = yaml["spec"]) {
    read_spec(spec, s);
  }
  const YAML::Node status = yaml["status"];
  if (status && status["loadBalancer"]) {
    for (const YAML::Node& i : status["loadBalancer"]["ingress"]) {
      s.load_balancer_ingress.push_back(
          {text(i, "ip"), text(i, "hostname"), maybe_text(i, "ipMode")});
    }
  }
  return s;
}

model::EndpointSlice read_slice(const YAML::Node& yaml) {
  model::EndpointSlice s;
  const YAML::Node metadata = yaml["metadata"];
  s.name = name_of(metadata);
  s.labels = string_map(metadata["labels"]);
  s.annotations = string_map(metadata["annotations"]);
  s.address_type = text(yaml, "addressType");
  for (const YAML::Node& p : yaml["ports"]) {
    model::SlicePort port;
    const YAML::Node name = p["name"];
    if (!name) {
      port.name = "";  // a missing name means "", an explicit null means nil
    } else if (!name.IsNull()) {
      port.name = name.as<std::string>();
    }
    port.protocol = text(p, "protocol");
    if (const YAML::Node value = p["port"]; value && !value.IsNull()) {
      port.port = value.as<std::int64_t>();
    }
    s.ports.push_back(std::move(port));
  }
  for (const YAML::Node& e : yaml["endpoints"]) {
    s.endpoints.push_back(read_endpoint(e));
  }
  return s;
}

NodeSetup read_node(const YAML::Node& yaml) {
  NodeSetup setup;
  setup.node.name = text(yaml, "name");
  setup.config.node_name = setup.node.name;
  if (const YAML::Node zone = yaml["zone"]; zone && !zone.IsNull()) {
    setup.node.labels["topology.kubernetes.io/zone"] = zone.as<std::string>();
  }
  for (const std::string& ip : read_strings(yaml["ips"])) {
    setup.node.addresses.push_back({"InternalIP", ip});
  }
  for (const char* key : {"ips", "extraIPs"}) {
    for (const std::string& ip : read_strings(yaml[key])) {
      if (const auto address = core::parse_address(ip)) {
        setup.host_addresses.push_back(*address);
      }
    }
  }
  setup.node.pod_cidrs = read_strings(yaml["podCIDRs"]);
  if (const YAML::Node object = yaml["object"]; object && !object.IsNull()) {
    setup.absent = maybe_bool(object, "absent").value_or(false);
    setup.node.deleting = object["deletionTimestamp"].IsDefined();
    for (const YAML::Node& t : object["taints"]) {
      setup.node.taints.push_back({text(t, "key"), text(t, "value"), text(t, "effect")});
    }
  }
  if (const YAML::Node config = yaml["config"]; config && !config.IsNull()) {
    read_config(config, setup);
  }
  return setup;
}

}  // namespace sluice::conformance
