// Compute functions of section 23: production of topology hints.
#include <cmath>

#include "control/compile/hints.h"
#include "test/conformance/compute_functions.h"

namespace sluice::conformance {
namespace {

using compile::HintMode;

std::vector<compile::HintNode> read_nodes(const YAML::Node& list) {
  std::vector<compile::HintNode> out;
  for (const YAML::Node& node : list) {
    compile::HintNode n;
    n.zone = node["zone"].as<std::string>("");
    n.milli_cpu = std::llround(node["cpu"].as<double>(0) * 1000);
    n.ready = node["ready"].as<bool>(true);
    for (const YAML::Node& label : node["labels"]) {
      n.labels.insert(label.as<std::string>());
    }
    out.push_back(std::move(n));
  }
  return out;
}

/// An endpoint of a case is ready unless it says otherwise; `ready: null` is nil (TH-9).
model::SliceEndpoint read_endpoint(const YAML::Node& node) {
  model::SliceEndpoint e;
  const YAML::Node ready = node["ready"];
  if (!ready.IsDefined() || !ready.IsNull()) {
    e.ready = ready.IsDefined() ? ready.as<bool>() : true;
  }
  if (node["zone"]) {
    e.zone = node["zone"].as<std::string>();
  }
  if (node["node"]) {
    e.node_name = node["node"].as<std::string>();
  }
  return e;
}

/// The name of a mode is what an annotation or trafficDistribution says.
HintMode mode_of(const std::string& name) {
  model::Service service;
  service.traffic_distribution = name;
  service.annotations["service.kubernetes.io/topology-mode"] = name;
  return compile::hint_mode(service);
}

YAML::Node per_endpoint(const model::EndpointSlice& slice) {
  YAML::Node list(YAML::NodeType::Sequence);
  for (const model::SliceEndpoint& e : slice.endpoints) {
    YAML::Node hints;
    if (!e.for_zones.empty()) {
      hints["forZones"] = e.for_zones;
    }
    if (!e.for_nodes.empty()) {
      hints["forNodes"] = e.for_nodes;
    }
    list.push_back(hints);
  }
  return list;
}

YAML::Node hints(const YAML::Node& in) {
  const std::vector<compile::HintNode> nodes = read_nodes(in["nodes"]);
  compile::HintSlices slices;
  slices.rewritten.emplace_back();
  for (const YAML::Node& endpoint : in["endpoints"]) {
    slices.rewritten.front().endpoints.push_back(read_endpoint(endpoint));
  }
  const compile::HintPlan plan = compile::plan_hints(
      mode_of(in["mode"].as<std::string>("")), std::move(slices), compile::zone_ratios(nodes));
  YAML::Node out;
  if (plan.withdrawn) {
    out["withdrawn"] = true;
    out["reason"] = *plan.withdrawn;
    return out;
  }
  out["hintsPerZone"] = plan.per_zone;
  out["moved"] = plan.moved;
  out["perEndpoint"] = per_endpoint(plan.slices.rewritten.front());
  return out;
}

YAML::Node hint_mode(const YAML::Node& in) {
  model::Service service;
  if (in["annotations"]) {
    service.annotations = in["annotations"].as<std::map<std::string, std::string>>();
  }
  service.traffic_distribution = in["trafficDistribution"].as<std::string>("");
  YAML::Node out;
  switch (compile::hint_mode(service)) {
    case HintMode::kAuto:
      out["mode"] = "Auto";
      break;
    case HintMode::kSameZone:
      out["mode"] = "PreferSameZone";
      break;
    case HintMode::kSameNode:
      out["mode"] = "PreferSameNode";
      break;
    case HintMode::kNone:
      out["mode"] = "none";
      break;
  }
  return out;
}

YAML::Node hints_overloaded(const YAML::Node& in) {
  YAML::Node out;
  out["overloaded"] = compile::hints_overloaded(in["perZone"].as<compile::HintsPerZone>(),
                                                in["ratios"].as<compile::ZoneRatios>());
  return out;
}

}  // namespace

void add_hint_functions(ComputeFunctions& functions) {
  functions["hints"] = hints;
  functions["hintMode"] = hint_mode;
  functions["hintsOverloaded"] = hints_overloaded;
}

}  // namespace sluice::conformance
