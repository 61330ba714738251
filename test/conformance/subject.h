#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "test/conformance/case.h"

namespace sluice::conformance {

/// What a case came to.
struct Outcome {
  /// One line per failing probe: expected, got, rule ids.
  std::vector<std::string> failures;
  /// Set: the subject cannot run this case, and why.
  std::optional<std::string> not_applicable;
};

/// Something that is run against the cases. One instance runs all of them, one after the other.
class Subject {
 public:
  virtual ~Subject() = default;
  /// Modes of the rule book whose cases hold for this subject.
  [[nodiscard]] virtual std::vector<std::string_view> modes() const = 0;
  [[nodiscard]] virtual Outcome run(const Case& c) = 0;
};

}  // namespace sluice::conformance
