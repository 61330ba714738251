#pragma once

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "control/compile/compile.h"
#include "control/model/model.h"

namespace sluice::conformance {

// A case file as plain structs; the format is cases/README.md.

struct Probe {
  std::string from_kind;              ///< pod, node, external
  std::string from_ip;
  std::string iface;                  ///< "" : unspecified
  std::string to;
  std::uint16_t port = 0;
  std::uint16_t sport = 0;            ///< 0: any
  std::string protocol;               ///< TCP, UDP, SCTP
  std::string verdict;                ///< forward, reject, drop, pass
  std::optional<std::vector<std::string>> endpoints;
  std::string snat;                   ///< "", none, masquerade
  std::map<std::string, std::string> snat_if_endpoint;
  std::string affinity;               ///< "", none or seconds
  std::string pick;                   ///< label to remember the endpoint under
  std::string same_as;                ///< label of an earlier probe
  bool free = false;
};

/// The node of a case: what it is, and what the cluster says about it.
struct NodeSetup {
  model::Node node;
  bool absent = false;                ///< the Node object is unknown
  compile::NodeConfig config;
  std::vector<core::IpAddress> host_addresses;
  std::vector<std::string> service_cidrs;
  int sync_period_seconds = 30;
  bool localhost_node_ports = true;   ///< NP-6, of iptables
};

struct Apply {
  std::vector<model::Service> services;
  std::vector<model::EndpointSlice> slices;
  std::optional<NodeSetup> node;
};
struct Delete {
  std::vector<model::ObjectName> services;
  std::vector<model::ObjectName> slices;
};
struct Advance {
  double seconds = 0;
};
/// The initial lists of the control plane are not complete yet: nothing is programmed (SY-1).
struct Unsynced {};
/// One of the lists is complete: "services" or "endpointSlices".
struct Synced {
  std::string list;
};
/// A step that is not about packets, as it was written: syncFailure, http, healthCheck, conntrack
/// and what belongs to other adapters.
struct HostStep {
  std::string kind;
  YAML::Node value;
};
using Step = std::variant<Probe, Apply, Delete, Advance, Unsynced, Synced, HostStep>;

struct Case {
  std::string file;
  std::string name;
  std::vector<std::string> spec;      ///< rule ids
  std::vector<std::string> modes;
  NodeSetup node;
  std::vector<model::Service> services;
  std::vector<model::EndpointSlice> slices;
  std::vector<Step> steps;            ///< `expect`, `healthCheck` and `http` come first
  bool asks_functions = false;        ///< has `compute` or `sync`
  bool renders = false;               ///< has `render`
  YAML::Node yaml;                    ///< the case as it was written
};

}  // namespace sluice::conformance
