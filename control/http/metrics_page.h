#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/core/metrics.h"

namespace sluice::http {

/// Writes numbers in the text format of Prometheus (0.0.4), sorted by name. Thread: one.
class MetricsPage : public core::MetricVisitor {
 public:
  void number(core::MetricKind kind, std::string_view name, std::string_view help,
              std::string_view labels, double value) override;
  void durations(std::string_view name, std::string_view help, std::string_view labels,
                 const core::DurationHistogram& histogram) override;

  [[nodiscard]] std::string text() const;

 private:
  struct Metric {
    const char* type = "";
    std::string help;
    std::vector<std::string> lines;
  };
  Metric& metric(std::string_view name, const char* type, std::string_view help);

  std::map<std::string, Metric, std::less<>> metrics_;
};

}  // namespace sluice::http
