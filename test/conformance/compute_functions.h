#pragma once

#include <yaml-cpp/yaml.h>

#include <functional>
#include <map>
#include <string>

namespace sluice::conformance {

/// Answers one `compute` entry from its `in`.
using ComputeFunction = std::function<YAML::Node(const YAML::Node& in)>;
using ComputeFunctions = std::map<std::string, ComputeFunction>;

// Each adds the functions of some sections of the rule book.
void add_adapter_functions(ComputeFunctions& functions);     ///< section 19
void add_allocation_functions(ComputeFunctions& functions);  ///< section 22
void add_hint_functions(ComputeFunctions& functions);        ///< section 23
void add_node_functions(ComputeFunctions& functions);        ///< sections 12, 13, 16, 17

}  // namespace sluice::conformance
