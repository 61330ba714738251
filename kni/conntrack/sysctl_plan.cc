// Conntrack sizing: rules CT-7..CT-9 (section 16.2).
#include "kni/conntrack/sysctl_plan.h"

#include <algorithm>

namespace sluice::kni {
namespace {

constexpr std::uint64_t kEntriesPerBucket = 4;  // CT-7
constexpr const char* kPrefix = "net/netfilter/nf_conntrack_";

void add_timeout(const char* name, std::chrono::seconds timeout, std::vector<SysctlWrite>& out) {
  if (timeout.count() > 0) {
    out.push_back({std::string(kPrefix) + name, static_cast<std::uint64_t>(timeout.count())});
  }
}

}  // namespace

std::uint64_t conntrack_max(const ConntrackSettings& settings, unsigned cpus) {
  if (settings.max_per_core == 0) {
    return 0;
  }
  // More than the cap per core is more than the cap in all, so nothing can overflow.
  const std::uint64_t scaled =
      std::min(settings.max_per_core, kConntrackMaxCap + 1) * std::max(cpus, 1u);
  return scaled > kConntrackMaxCap ? kConntrackMaxCap : std::max(scaled, settings.min);
}

std::vector<SysctlWrite> plan_conntrack_sysctls(const ConntrackSettings& settings, unsigned cpus,
                                                const ConntrackPresent& present) {
  std::vector<SysctlWrite> out;
  if (const std::uint64_t max = conntrack_max(settings, cpus); max != 0) {
    if (max != present.max) {
      out.push_back({std::string(kPrefix) + "max", max});
    }
    if (present.hash_size < max / kEntriesPerBucket) {
      out.push_back({"/sys/module/nf_conntrack/parameters/hashsize", max / kEntriesPerBucket});
    }
  }
  if (settings.tcp_be_liberal) {
    out.push_back({std::string(kPrefix) + "tcp_be_liberal", 1});
  }
  add_timeout("tcp_timeout_established", settings.tcp_established_timeout, out);
  add_timeout("tcp_timeout_close_wait", settings.tcp_close_wait_timeout, out);
  add_timeout("udp_timeout", settings.udp_timeout, out);
  add_timeout("udp_timeout_stream", settings.udp_stream_timeout, out);
  return out;
}

}  // namespace sluice::kni
