// Session affinity, data part: rule S-8 (section 12). A-1..A-7 happen on the workers.
#include "control/compile/affinity.h"

namespace sluice::compile {
namespace {

constexpr std::int64_t kDefaultSeconds = 10800;  // S-8
constexpr std::int64_t kLongestSeconds = 86400;  // S-8

}  // namespace

std::uint32_t affinity_seconds(const model::Service& service, Reporter& report) {
  if (service.session_affinity.empty() || service.session_affinity == "None") {
    return 0;
  }
  if (service.session_affinity != "ClientIP") {
    report.invalid("spec.sessionAffinity",
                   "'" + service.session_affinity + "' is not None or ClientIP");
    return 0;
  }
  const std::int64_t seconds = service.affinity_timeout_seconds.value_or(kDefaultSeconds);
  if (seconds < 1 || seconds > kLongestSeconds) {
    report.invalid("spec.sessionAffinityConfig.clientIP.timeoutSeconds",
                   std::to_string(seconds) + " is not in 1..86400; 10800 is used");
    return static_cast<std::uint32_t>(kDefaultSeconds);
  }
  return static_cast<std::uint32_t>(seconds);
}

}  // namespace sluice::compile
