#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

namespace sluice::bench {

/// What was measured, and how a machine that other programs disturb would have told it.
struct Figure {
  Figure() = default;
  /// One value, and no other way to tell it.
  Figure(double value) : told(value) {}  // NOLINT: most figures are a number
  Figure(double low, double middle, std::string which)
      : told(low), median(middle), how(std::move(which)) {}

  double told = 0;               ///< what a target is compared with
  std::optional<double> median;  ///< of the same measurements
  std::string how;               ///< which of them `told` is: "5 % quantile"; empty: there is one
};

/// Measured figures by name: "nat4_64k" (cycles), "new_flows_millions" (a second).
using Results = std::map<std::string, Figure>;

/// Prints `target NAME measured M wanted W goal G pass|short` for each target of design section 8
/// that this run has figures for, and behind it, where there is one, `# HOW; median M`. Then, for
/// those of them whose floor was measured, `floor NAME VALUE (HOW; median M; WHAT IT IS)`.
void print_targets(const Results& results);

}  // namespace sluice::bench
