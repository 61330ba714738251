#pragma once

#include <yaml-cpp/yaml.h>

#include "test/conformance/case.h"

namespace sluice::conformance {

// Kubernetes objects as the case files write them. Throws YAML::Exception on a wrong type.

[[nodiscard]] model::Service read_service(const YAML::Node& yaml);
[[nodiscard]] model::EndpointSlice read_slice(const YAML::Node& yaml);
/// @param yaml the case's `node`; keys absent from it keep what `base` has.
[[nodiscard]] NodeSetup read_node(const YAML::Node& yaml);
/// Puts the top-level keys of `over` into a copy of `base`.
[[nodiscard]] YAML::Node overlay(const YAML::Node& base, const YAML::Node& over);
[[nodiscard]] std::vector<std::string> read_strings(const YAML::Node& yaml);

}  // namespace sluice::conformance
