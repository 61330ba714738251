#include "control/http/metrics_page.h"

#include <array>
#include <cstdio>

namespace sluice::http {
namespace {

/// Whole numbers without an exponent, others as short as they are exact enough.
std::string text_of(double value) {
  constexpr double kExact = 9007199254740992.0;  // 2^53
  std::array<char, 40> out{};
  const bool whole = value > -kExact && value < kExact &&
                     static_cast<double>(static_cast<long long>(value)) == value;
  if (whole) {
    std::snprintf(out.data(), out.size(), "%lld", static_cast<long long>(value));
  } else {
    std::snprintf(out.data(), out.size(), "%.10g", value);
  }
  return out.data();
}

std::string line(std::string_view name, std::string_view labels, const std::string& value) {
  std::string out(name);
  if (!labels.empty()) {
    out += '{';
    out += labels;
    out += '}';
  }
  return out + ' ' + value + '\n';
}

}  // namespace

MetricsPage::Metric& MetricsPage::metric(std::string_view name, const char* type,
                                         std::string_view help) {
  Metric& found = metrics_[std::string(name)];
  found.type = type;
  found.help = help;
  return found;
}

void MetricsPage::number(core::MetricKind kind, std::string_view name, std::string_view help,
                         std::string_view labels, double value) {
  const char* type = kind == core::MetricKind::kCounter ? "counter" : "gauge";
  metric(name, type, help).lines.push_back(line(name, labels, text_of(value)));
}

void MetricsPage::durations(std::string_view name, std::string_view help, std::string_view labels,
                            const core::DurationHistogram& histogram) {
  Metric& to = metric(name, "histogram", help);
  const std::string base(name);
  const std::string before = labels.empty() ? "" : std::string(labels) + ",";
  for (std::size_t i = 0; i < histogram.buckets(); ++i) {
    to.lines.push_back(line(base + "_bucket", before + "le=\"" + text_of(histogram.bound(i)) + "\"",
                            text_of(static_cast<double>(histogram.up_to(i)))));
  }
  const std::string count = text_of(static_cast<double>(histogram.count()));
  to.lines.push_back(line(base + "_bucket", before + "le=\"+Inf\"", count));
  to.lines.push_back(line(base + "_sum", labels, text_of(histogram.seconds())));
  to.lines.push_back(line(base + "_count", labels, count));
}

std::string MetricsPage::text() const {
  std::string out;
  for (const auto& [name, metric] : metrics_) {
    out += "# HELP " + name + " " + metric.help + "\n# TYPE " + name + " " + metric.type + "\n";
    for (const std::string& line : metric.lines) {
      out += line;
    }
  }
  return out;
}

}  // namespace sluice::http
