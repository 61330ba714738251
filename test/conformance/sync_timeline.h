#pragma once

#include <yaml-cpp/yaml.h>

#include <vector>

namespace sluice::conformance {

/// Plays the `sync` timeline of a case: one loop that runs when the rate limiter of the publisher
/// allows, requests and failures from outside. @return start times of the runs in seconds.
[[nodiscard]] std::vector<double> play_timeline(const YAML::Node& sync);

}  // namespace sluice::conformance
