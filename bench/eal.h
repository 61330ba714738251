#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <rte_eal.h>
#include <sched.h>

namespace sluice::bench {

/// Starts an EAL without devices and files.
/// @param mib  memory: that many MiB of huge pages, or of ordinary ones.
[[nodiscard]] inline bool start_eal(bool hugepages, std::size_t mib) {
  std::vector<std::string> args = {
      "bench",       "--no-pci",         "--no-telemetry", "--no-shconf",
      "--log-level", "lib.*:critical",   "--lcores",       "0@" + std::to_string(sched_getcpu()),
      "-m",          std::to_string(mib)};
  if (hugepages) {
    args.insert(args.end(), {"--in-memory"});
  } else {
    args.insert(args.end(), {"--no-huge"});
  }
  std::vector<char*> argv;
  for (std::string& a : args) {
    argv.push_back(a.data());
  }
  return rte_eal_init(static_cast<int>(argv.size()), argv.data()) >= 0;
}

}  // namespace sluice::bench
