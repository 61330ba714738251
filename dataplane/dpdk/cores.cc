#include "dataplane/dpdk/cores.h"

#include <algorithm>
#include <set>

#include <sched.h>

#include <rte_config.h>

#include "dataplane/pipeline/packet.h"

namespace sluice::dpdk {
namespace {

// lcore 0 is the control side, see lcores_argument().
constexpr std::uint32_t kMost =
    std::min<std::uint32_t>(pipeline::kMaxWorkers, RTE_MAX_LCORE - 1);

}  // namespace

std::vector<std::uint32_t> available_cores() {
  // A mask of the fixed size fails with EINVAL on hosts with more CPUs: grow until it fits.
  for (std::size_t count = CPU_SETSIZE; count <= 65536; count *= 2) {
    cpu_set_t* mask = CPU_ALLOC(count);
    const std::size_t bytes = CPU_ALLOC_SIZE(count);
    CPU_ZERO_S(bytes, mask);
    const int rc = sched_getaffinity(0, bytes, mask);
    std::vector<std::uint32_t> cores;
    for (std::size_t i = 0; rc == 0 && i < count; ++i) {
      if (CPU_ISSET_S(i, bytes, mask)) {
        cores.push_back(static_cast<std::uint32_t>(i));
      }
    }
    CPU_FREE(mask);
    if (rc == 0) {
      return cores;
    }
  }
  return {};
}

std::string print_cores(std::span<const std::uint32_t> cores) {
  std::string text;
  for (std::size_t i = 0; i < cores.size();) {
    std::size_t end = i;
    while (end + 1 < cores.size() && cores[end + 1] == cores[end] + 1) {
      ++end;
    }
    text += (text.empty() ? "" : ",") + std::to_string(cores[i]);
    if (end > i) {
      text += "-" + std::to_string(cores[end]);
    }
    i = end + 1;
  }
  return text;
}

core::Result<std::vector<std::uint32_t>> choose_cores(std::uint32_t workers,
                                                      std::span<const std::uint32_t> configured,
                                                      std::span<const std::uint32_t> available) {
  const auto fail = [&](const std::string& what) {
    return tl::make_unexpected(
        core::Error{"workers: " + what + " (cores of this process: " + print_cores(available) + ")"});
  };
  if (workers == 0 || workers > kMost) {
    return fail(std::to_string(workers) + " workers asked, 1 to " +
                std::to_string(kMost) + " are possible");
  }
  if (configured.empty()) {
    if (workers > available.size()) {
      return fail(std::to_string(workers) + " workers asked, but only " +
                  std::to_string(available.size()) + " cores are there");
    }
    return std::vector<std::uint32_t>(available.end() - workers, available.end());
  }
  if (configured.size() != workers) {
    return fail(std::to_string(workers) + " workers asked, but " +
                std::to_string(configured.size()) + " cores are named");
  }
  std::set<std::uint32_t> seen;
  for (const std::uint32_t core : configured) {
    if (!seen.insert(core).second) {
      return fail("core " + std::to_string(core) + " is named twice");
    }
    if (std::find(available.begin(), available.end(), core) == available.end()) {
      return fail("core " + std::to_string(core) + " does not exist or may not be used");
    }
  }
  return std::vector<std::uint32_t>(configured.begin(), configured.end());
}

std::string lcores_argument(std::span<const std::uint32_t> worker_cores,
                            std::span<const std::uint32_t> available) {
  std::vector<std::uint32_t> control;
  for (const std::uint32_t core : available) {
    if (std::find(worker_cores.begin(), worker_cores.end(), core) == worker_cores.end()) {
      control.push_back(core);
    }
  }
  if (control.empty()) {
    control.assign(available.begin(), available.end());
  }
  std::string text = "0@(" + print_cores(control) + ")";
  for (std::size_t i = 0; i < worker_cores.size(); ++i) {
    text += "," + std::to_string(i + 1) + "@" + std::to_string(worker_cores[i]);
  }
  return text;
}

}  // namespace sluice::dpdk
