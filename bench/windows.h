#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace sluice::bench {

/// 0 of nothing: what failed has no figures.
inline double percentile(std::vector<double> values, double p) {
  if (values.empty()) {
    return 0;
  }
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(p * static_cast<double>(values.size() - 1))];
}
inline double median(const std::vector<double>& values) { return percentile(values, 0.5); }

/// Milliseconds of all CPUs together that the host gave to others since it started, in steps of a
/// clock tick; 0 where the host does not tell.
inline double stolen_ms() {
  std::ifstream stat("/proc/stat");
  std::string cpu;
  double times[8] = {};  // user nice system idle iowait irq softirq steal
  stat >> cpu;
  for (double& time : times) {
    stat >> time;
  }
  return times[7] * 1000 / static_cast<double>(sysconf(_SC_CLK_TCK));
}

/// What the host took while the object lived.
class StealWatch {
 public:
  [[nodiscard]] double ms() const { return stolen_ms() - before_; }

 private:
  double before_ = stolen_ms();
};

/// " 0.71 0.80 0.75": in the order they were measured.
inline std::string listed(const std::vector<double>& values, int digits) {
  std::string text;
  for (const double value : values) {
    char number[32];
    std::snprintf(number, sizeof number, " %.*f", digits, value);
    text += number;
  }
  return text;
}

}  // namespace sluice::bench
