#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "control/compile/compile.h"

namespace sluice::compile {

/// Collects report lines about one object. Bounded, so that one object with thousands of faults
/// cannot fill the memory: the last lines say how many were left out. Faults and warnings have a
/// bound each: a strict request is refused for the one fault behind any number of warnings.
class Reporter {
 public:
  static constexpr std::size_t kMaxLines = 32;  ///< of a kind and object: they show the pattern

  Reporter(std::string object, std::vector<ReportLine>& lines)
      : object_(std::move(object)), lines_(lines) {}
  Reporter(const Reporter&) = delete;
  Reporter& operator=(const Reporter&) = delete;
  ~Reporter() {
    tell_rest(faults_, "faults");
    tell_rest(warnings_, "warnings");
  }

  /// A fault: this part is skipped, and a strict request is refused.
  void invalid(std::string field, std::string reason) {
    if (++faults_ <= kMaxLines) {
      add(ReportLine::Kind::kSkipped, std::move(field), std::move(reason));
    }
  }
  /// The rules say what to do with it; worth knowing.
  void warning(std::string field, std::string reason) {
    if (++warnings_ <= kMaxLines) {
      add(ReportLine::Kind::kWarning, std::move(field), std::move(reason));
    }
  }

 private:
  void add(ReportLine::Kind kind, std::string field, std::string reason) {
    lines_.push_back({kind, object_, std::move(field), std::move(reason)});
  }
  void tell_rest(std::size_t count, const char* what) {
    if (count > kMaxLines) {
      add(ReportLine::Kind::kWarning, "",
          std::to_string(count - kMaxLines) + " more " + what + " of this object");
    }
  }

  std::string object_;
  std::vector<ReportLine>& lines_;
  std::size_t faults_ = 0;
  std::size_t warnings_ = 0;
};

/// "spec.ports[2].port"
inline std::string indexed(const char* list, std::size_t i, const char* field = "") {
  return std::string(list) + "[" + std::to_string(i) + "]" + field;
}

}  // namespace sluice::compile
