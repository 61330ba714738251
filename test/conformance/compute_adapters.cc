// Functions of the kernel adapters: section 19.
#include "kni/iptables/names.h"
#include "kni/iptables/render.h"
#include "test/conformance/case_text.h"
#include "test/conformance/compute_functions.h"

namespace sluice::conformance {
namespace {

YAML::Node iptables_hash(const YAML::Node& in) {
  YAML::Node out;
  out["hash"] = kni::ipt::chain_hash(in["name"].as<std::string>(),
                                     protocol_of(in["protocol"].as<std::string>()),
                                     in["endpoint"].as<std::string>(""));
  return out;
}

YAML::Node iptables_probability(const YAML::Node& in) {
  YAML::Node out;
  out["text"] = kni::ipt::probability_text(1, in["remaining"].as<std::uint64_t>());
  return out;
}

YAML::Node iptables_large_cluster(const YAML::Node& in) {
  YAML::Node out;
  out["large"] = kni::ipt::is_large(in["totalEndpoints"].as<std::size_t>());
  return out;
}

}  // namespace

void add_adapter_functions(ComputeFunctions& functions) {
  functions["iptablesHash"] = iptables_hash;
  functions["iptablesProbability"] = iptables_probability;
  functions["iptablesLargeCluster"] = iptables_large_cluster;
}

}  // namespace sluice::conformance
