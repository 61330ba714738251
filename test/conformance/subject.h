#pragma once

#include <algorithm>
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
  /// Parts of a case that the subject cannot run, and why, each once; the rest was judged.
  std::vector<std::string> skipped;

  void skip(const std::string& reason) {
    if (std::find(skipped.begin(), skipped.end(), reason) == skipped.end()) {
      skipped.push_back(reason);
    }
  }
};

/// "[A-1 A-2]": the rules a case is about.
[[nodiscard]] inline std::string rules_text(const Case& c) {
  std::string out;
  for (const std::string& rule : c.spec) {
    out += (out.empty() ? "" : " ") + rule;
  }
  return "[" + out + "]";
}

/// Something that is run against the cases. One instance runs all of them, one after the other.
class Subject {
 public:
  virtual ~Subject() = default;
  /// Modes of the rule book whose cases hold for this subject.
  [[nodiscard]] virtual std::vector<std::string_view> modes() const = 0;
  /// Told once which cases will be run; those that take long may begin.
  virtual void prepare(const std::vector<const Case*>& cases) { (void)cases; }
  [[nodiscard]] virtual Outcome run(const Case& c) = 0;
};

}  // namespace sluice::conformance
