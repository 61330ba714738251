#pragma once

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

struct HealthCheck {
  std::uint16_t port = 0;
  core::Family family = core::Family::kIpv4;
  bool listening = true;
  int code = 0;
  std::optional<std::uint32_t> local_endpoints;
  bool needs_server = false;          ///< looks at headers, body or the proxy's own health
};

/// The node of a case: what it is, and what the cluster says about it.
struct NodeSetup {
  model::Node node;
  bool absent = false;                ///< the Node object is unknown
  compile::NodeConfig config;
  std::vector<core::IpAddress> host_addresses;
  std::vector<std::string> service_cidrs;
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
/// A step of a kind the runner reads but no subject here performs.
struct OtherStep {
  std::string kind;
};
using HealthChecks = std::vector<HealthCheck>;
using Step = std::variant<Probe, HealthChecks, Apply, Delete, Advance, OtherStep>;

struct Case {
  std::string file;
  std::string name;
  std::vector<std::string> spec;      ///< rule ids
  std::vector<std::string> modes;
  NodeSetup node;
  std::vector<model::Service> services;
  std::vector<model::EndpointSlice> slices;
  std::vector<Step> steps;            ///< `expect` and `healthCheck` come first
  /// Kinds of expectation that are not steps: "http", "sync", "compute", "render".
  std::vector<std::string> other;
};

}  // namespace sluice::conformance
