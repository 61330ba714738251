#include "kni/conntrack/sysctls.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

namespace sluice::kni {
namespace {

constexpr const char* kHashSize = "/sys/module/nf_conntrack/parameters/hashsize";

std::string path_of(const std::string& root, const std::string& path) {
  return root + (path.front() == '/' ? path : "/proc/sys/" + path);
}

std::uint64_t read_number(const std::string& path) {
  std::ifstream in(path);
  std::uint64_t value = 0;
  in >> value;
  return in ? value : 0;
}

}  // namespace

core::Result<void> apply_conntrack_sysctls(const ConntrackSettings& settings,
                                           const std::string& root) {
  const ConntrackPresent present{read_number(path_of(root, "net/netfilter/nf_conntrack_max")),
                                 read_number(path_of(root, kHashSize))};
  const auto cpus = static_cast<unsigned>(std::max(1L, sysconf(_SC_NPROCESSORS_CONF)));
  for (const SysctlWrite& write : plan_conntrack_sysctls(settings, cpus, present)) {
    const std::string path = path_of(root, write.path);
    if (read_number(path) == write.value) {
      continue;
    }
    errno = 0;
    std::ofstream out(path);
    if (!(out << write.value << std::flush)) {
      return tl::make_unexpected(core::Error{"conntrack: writing " + std::to_string(write.value) +
                                             " to " + path + ": " + std::strerror(errno)});
    }
  }
  return {};
}

}  // namespace sluice::kni
