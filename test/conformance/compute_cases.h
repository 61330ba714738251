#pragma once

#include <yaml-cpp/yaml.h>

#include <optional>
#include <string>
#include <vector>

namespace sluice::conformance {

/// What the `compute` and `sync` parts of a case came to.
struct ComputeOutcome {
  /// One line per failing entry: function and input, expected, got.
  std::vector<std::string> failures;
  /// Set: a function that this subject does not have.
  std::optional<std::string> not_applicable;
  std::size_t entries = 0;  ///< how many were looked at
};

/// Runs the `compute` entries and the `sync` timeline of a case, if it has any. They ask pure
/// functions; no state is kept. A wrong type in the YAML is a failure of the entry.
[[nodiscard]] ComputeOutcome run_compute_case(const YAML::Node& c);

}  // namespace sluice::conformance
