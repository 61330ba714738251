#pragma once

#include <string>
#include <utility>
#include <vector>

#include "control/compile/compile.h"

namespace sluice::compile {

/// Collects report lines about one object. Bounded, so that one object with thousands of faults
/// cannot fill the memory: the last line says how many were left out.
class Reporter {
 public:
  static constexpr std::size_t kMaxLines = 32;  ///< per object; enough to see the pattern

  Reporter(std::string object, std::vector<ReportLine>& lines)
      : object_(std::move(object)), lines_(lines) {}
  Reporter(const Reporter&) = delete;
  Reporter& operator=(const Reporter&) = delete;
  ~Reporter() {
    if (count_ > kMaxLines) {
      lines_.push_back({ReportLine::Kind::kWarning, object_, "",
                        std::to_string(count_ - kMaxLines) + " more faults of this object"});
    }
  }

  /// A fault: this part is skipped, and a strict request is refused.
  void invalid(std::string field, std::string reason) {
    add(ReportLine::Kind::kSkipped, std::move(field), std::move(reason));
  }
  /// The rules say what to do with it; worth knowing.
  void warning(std::string field, std::string reason) {
    add(ReportLine::Kind::kWarning, std::move(field), std::move(reason));
  }

 private:
  void add(ReportLine::Kind kind, std::string field, std::string reason) {
    if (++count_ <= kMaxLines) {
      lines_.push_back({kind, object_, std::move(field), std::move(reason)});
    }
  }
  std::string object_;
  std::vector<ReportLine>& lines_;
  std::size_t count_ = 0;
};

/// "spec.ports[2].port"
inline std::string indexed(const char* list, std::size_t i, const char* field = "") {
  return std::string(list) + "[" + std::to_string(i) + "]" + field;
}

}  // namespace sluice::compile
