// Compute functions of sections 12, 13, 16 and 17: affinity, node-port addresses, conntrack sizing,
// changes and syncs.
#include "control/compile/affinity.h"
#include "control/compile/localhost_node_ports.h"
#include "control/compile/node_ports.h"
#include "control/model/change_tracker.h"
#include "control/publish/full_sync.h"
#include "kni/conntrack/sysctl_plan.h"
#include "test/conformance/compute_functions.h"

namespace sluice::conformance {
namespace {

YAML::Node affinity_timeout_valid(const YAML::Node& in) {
  model::Service service;
  service.session_affinity = "ClientIP";
  service.affinity_timeout_seconds = in["seconds"].as<std::int64_t>();
  std::vector<compile::ReportLine> lines;
  {
    compile::Reporter report("service", lines);
    static_cast<void>(compile::affinity_seconds(service, report));
  }
  YAML::Node out;
  out["valid"] = lines.empty();
  return out;
}

YAML::Node localhost_node_port_proxy(const YAML::Node& in) {
  YAML::Node out;
  out["families"] = YAML::Node(YAML::NodeType::Sequence);
  for (const core::Family f : compile::localhost_proxy_families(
           in["gate"].as<bool>(), in["values"].as<std::vector<std::string>>())) {
    out["families"].push_back(f == core::Family::kIpv4 ? "IPv4" : "IPv6");
  }
  return out;
}

std::vector<core::IpAddress> read_addresses(const YAML::Node& list) {
  std::vector<core::IpAddress> out;
  for (const YAML::Node& item : list) {
    if (const auto address = core::parse_address(item.as<std::string>())) {
      out.push_back(*address);
    }
  }
  return out;
}

/// `values`: the configured list, `nodeIPs`, `localIPs`; `family` of the answer.
YAML::Node node_port_addresses(const YAML::Node& in) {
  compile::NodeConfig config;
  if (in["values"]) {
    config.node_port_addresses = in["values"].as<std::vector<std::string>>();
  }
  config.node_addresses = read_addresses(in["nodeIPs"]);
  const auto context = compile::resolve_node(config, nullptr, compile::Profile::kNftables);
  std::vector<compile::ReportLine> lines;
  compile::Reporter report("node", lines);
  const auto ranges = compile::node_port_ranges(config, context, report);
  const core::Family family =
      in["family"].as<std::string>("IPv4") == "IPv6" ? core::Family::kIpv6 : core::Family::kIpv4;
  std::vector<core::IpAddress> local;
  for (const core::IpAddress& address : read_addresses(in["localIPs"])) {
    if (address.family() == family && !address.is_loopback()) {
      local.push_back(address);
    }
  }
  const auto answer = compile::node_port_addresses(ranges, family, local);
  YAML::Node out;
  out["matchAll"] = answer.match_all;
  out["ips"] = YAML::Node(YAML::NodeType::Sequence);
  for (const core::IpAddress& address : answer.match_all ? local : answer.addresses) {
    out["ips"].push_back(core::to_string(address));
  }
  return out;
}

kni::ConntrackSettings read_settings(const YAML::Node& in) {
  kni::ConntrackSettings s;
  const auto seconds = [&](const char* key, std::chrono::seconds& value) {
    value = std::chrono::seconds(in[key].as<std::int64_t>(value.count()));
  };
  s.max_per_core = in["maxPerCore"].as<std::uint64_t>(s.max_per_core);
  s.min = in["min"].as<std::uint64_t>(s.min);
  s.tcp_be_liberal = in["tcpBeLiberal"].as<bool>(s.tcp_be_liberal);
  seconds("tcpEstablishedTimeout", s.tcp_established_timeout);
  seconds("tcpCloseWaitTimeout", s.tcp_close_wait_timeout);
  seconds("udpTimeout", s.udp_timeout);
  seconds("udpStreamTimeout", s.udp_stream_timeout);
  return s;
}

YAML::Node conntrack_max(const YAML::Node& in) {
  YAML::Node out;
  out["value"] = kni::conntrack_max(read_settings(in), in["cpus"].as<unsigned>());
  return out;
}

/// Answers by the last part of each name; what is not written is null.
YAML::Node conntrack_sysctls(const YAML::Node& in) {
  const kni::ConntrackPresent present{in["currentMax"].as<std::uint64_t>(0),
                                      in["currentHashsize"].as<std::uint64_t>(0)};
  YAML::Node out;
  out["hashsize"] = YAML::Node();
  for (const kni::SysctlWrite& w :
       kni::plan_conntrack_sysctls(read_settings(in), in["cpus"].as<unsigned>(1), present)) {
    out[w.path.substr(w.path.rfind('/') + 1)] = w.value;
  }
  return out;
}

/// Versions of an object are letters; `deleted` and null are none.
bool has_object(const YAML::Node& version) {
  return !version.IsNull() && version.Scalar() != "deleted";
}

YAML::Node track_services(const YAML::Node& in) {
  const model::ObjectName name{"shop", "cart"};
  const auto read = [&](const YAML::Node& version) {
    std::optional<model::Service> service;
    if (has_object(version)) {
      service.emplace();
      service->name = name;
      service->labels["version"] = version.Scalar();
    }
    return service;
  };
  model::ServiceChangeTracker tracker;
  std::optional<model::Service> present = read(in["applied"]);
  YAML::Node out;
  for (const YAML::Node& event : in["events"]) {
    const std::optional<model::Service> next = read(event);
    out["syncRequested"].push_back(
        tracker.update(name, present ? &*present : nullptr, next ? &*next : nullptr));
    present = next;
  }
  out["pending"] = tracker.pending();
  return out;
}

YAML::Node track_slices(const YAML::Node& in) {
  const model::ObjectName name{"shop", "cart-a"};
  const auto delta_of = [&](const YAML::Node& version) {
    model::Delta delta;
    if (has_object(version)) {
      model::EndpointSlice slice;
      slice.name = name;
      slice.labels = {{"kubernetes.io/service-name", "cart"}, {"version", version.Scalar()}};
      delta.slices.push_back(std::move(slice));
    } else {
      delta.deleted_slices.push_back(name);
    }
    return delta;
  };
  model::ClusterState state;
  model::apply(state, delta_of(in["applied"]));
  YAML::Node out;
  for (const YAML::Node& event : in["events"]) {
    out["syncRequested"].push_back(!model::apply(state, delta_of(event)).slices.empty());
  }
  return out;
}

YAML::Node change_tracker(const YAML::Node& in) {
  return in["kind"].as<std::string>() == "service" ? track_services(in) : track_slices(in);
}

YAML::Node sync_is_full(const YAML::Node& in) {
  publish::SyncSituation s;
  s.first = in["first"].as<bool>(false);
  s.previous_failed = in["previousFailed"].as<bool>(false);
  s.topology_label_changed = in["topologyChanged"].as<bool>(false);
  s.since_full = std::chrono::seconds(in["sinceFull"].as<std::int64_t>(0));
  s.canary_lost = in["canaryLost"].as<bool>(false);
  s.large_cluster = in["largeCluster"].as<bool>(false);
  s.stale_deletion_failed = in["staleDeletionFailed"].as<bool>(false);
  YAML::Node out;
  out["full"] = publish::sync_is_full(s);
  return out;
}

}  // namespace

void add_node_functions(ComputeFunctions& functions) {
  functions["affinityTimeoutValid"] = affinity_timeout_valid;
  functions["localhostNodePortProxy"] = localhost_node_port_proxy;
  functions["nodePortAddresses"] = node_port_addresses;
  functions["conntrackMax"] = conntrack_max;
  functions["conntrackSysctls"] = conntrack_sysctls;
  functions["changeTracker"] = change_tracker;
  functions["syncIsFull"] = sync_is_full;
}

}  // namespace sluice::conformance
