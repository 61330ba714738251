#pragma once

#include <yaml-cpp/yaml.h>

#include <string>
#include <vector>

#include "test/support/http_client.h"

namespace sluice::conformance {

/// Compares an answer with what an `http` entry says: code, headers, text, body, bodyAbsent,
/// bodyKeys. Adds lines "what: expected .., got ..".
void judge_answer(const std::string& what, const YAML::Node& want, const test::HttpAnswer& got,
                  std::vector<std::string>& failures);

/// A `healthCheck` entry as an `http` one: its counts are fields of the body, and a header.
[[nodiscard]] YAML::Node service_expectation(const YAML::Node& health_check);

}  // namespace sluice::conformance
