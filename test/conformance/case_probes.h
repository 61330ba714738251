#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "test/conformance/case.h"

namespace sluice::conformance {

/// Runs of a case with a probe that no pin applies to, each with other random choices.
constexpr std::size_t kRunsOfFree = 25;

/// The probes of a case, in order.
[[nodiscard]] std::vector<const Probe*> probes_of(const Case& c);

/// True when one of them is so.
[[nodiscard]] bool any_probe(const Case& c, const std::function<bool(const Probe&)>& is);

/// Interfaces that probes name, each once, in order.
[[nodiscard]] std::vector<std::string> interfaces_of(const Case& c);

/// What one run cannot show: a probe to which no pin applies comes to every endpoint, and its
/// choice does not follow from that of any probe before.
class FreeProbes {
 public:
  explicit FreeProbes(const Case& c) : probes_(probes_of(c)) {}
  [[nodiscard]] bool any() const;
  /// @param choices  of one run: an endpoint for each probe; "": not forwarded.
  void add(std::vector<std::string> choices) { runs_.push_back(std::move(choices)); }
  [[nodiscard]] std::vector<std::string> failures() const;

 private:
  void judge(std::size_t i, std::vector<std::string>& out) const;

  std::vector<const Probe*> probes_;
  std::vector<std::vector<std::string>> runs_;
};

}  // namespace sluice::conformance
