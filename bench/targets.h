#pragma once

#include <map>
#include <string>

namespace sluice::bench {

/// Measured figures by name: "nat4_64k" (cycles), "new_flows_millions" (a second).
using Results = std::map<std::string, double>;

/// Prints `target NAME measured M wanted W goal G pass|short` for each target of design section 8
/// that this run has figures for.
void print_targets(const Results& results);

}  // namespace sluice::bench
