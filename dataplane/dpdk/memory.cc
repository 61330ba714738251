#include "dataplane/dpdk/memory.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <unistd.h>

namespace sluice::dpdk {
namespace {

constexpr std::size_t kMib = std::size_t{1} << 20;
// What the EAL, ethdev and the drivers take beside pools and tables: 20 to 30 MiB were seen with
// 4 ports; malloc heaps fragment, so twice that.
constexpr std::size_t kEalShare = 64 * kMib;

std::size_t read_number(const std::filesystem::path& path, std::size_t otherwise) {
  std::ifstream file(path);
  std::size_t value = 0;
  return file >> value ? value : otherwise;  // "max" in a cgroup file fails to parse: no limit
}

std::size_t mem_available() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  std::size_t kib = 0;
  std::string unit;
  while (file >> key >> kib) {
    if (key == "MemAvailable:") {
      return kib * 1024;
    }
    std::getline(file, unit);
  }
  return SIZE_MAX;
}

/// What the cgroup (v2) of this process leaves; SIZE_MAX without a limit.
std::size_t cgroup_available() {
  std::ifstream file("/proc/self/cgroup");
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind("0::", 0) == 0) {
      const std::filesystem::path dir = "/sys/fs/cgroup" + line.substr(3);
      const std::size_t limit = read_number(dir / "memory.max", SIZE_MAX);
      const std::size_t used = read_number(dir / "memory.current", 0);
      return limit == SIZE_MAX ? SIZE_MAX : limit - std::min(limit, used);
    }
  }
  return SIZE_MAX;
}

std::size_t free_hugepages() {
  std::size_t bytes = 0;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator("/sys/kernel/mm/hugepages", error)) {
    const std::string name = entry.path().filename();  // hugepages-2048kB
    const std::size_t dash = name.find('-');
    if (dash != std::string::npos) {
      bytes += read_number(entry.path() / "free_hugepages", 0) *
               std::stoul("0" + name.substr(dash + 1)) * 1024;
    }
  }
  return bytes;
}

std::size_t to_mib(std::size_t bytes) { return (bytes + kMib - 1) / kMib; }

std::string list_parts(const std::vector<MemoryPart>& need) {
  std::string text;
  for (const MemoryPart& part : need) {
    text += (text.empty() ? "" : ", ") + to_text(part);
  }
  return text;
}

}  // namespace

HostMemory read_host_memory() {
  return {std::min(mem_available(), cgroup_available()), free_hugepages()};
}

HostMemory without(const HostMemory& host, const MemoryPart& beside) noexcept {
  HostMemory left = host;
  left.available_bytes -= std::min(left.available_bytes, beside.bytes);
  return left;
}

std::string to_text(const MemoryPart& part) {
  return part.what + " " + std::to_string(to_mib(part.bytes));
}

core::Result<MemoryChoice> choose_memory(const std::vector<MemoryPart>& need,
                                         std::size_t limit_mib, HugepageUse use,
                                         const HostMemory& host) {
  std::size_t bytes = kEalShare;
  for (const MemoryPart& part : need) {
    bytes += part.bytes;
  }
  const std::size_t needed = to_mib(bytes);
  const std::string needed_text = std::to_string(needed) + " MiB are needed (" +
                                  list_parts(need) + ", EAL " +
                                  std::to_string(to_mib(kEalShare)) + ")";
  if (limit_mib != 0 && limit_mib < needed) {
    return tl::make_unexpected(core::Error{"memory: memory.mib is " + std::to_string(limit_mib) +
                                           ", but " + needed_text});
  }
  const std::size_t mib = limit_mib != 0 ? limit_mib : needed;
  const std::size_t huge_mib = host.free_hugepage_bytes / kMib;
  if (use == HugepageUse::kOn && huge_mib < mib) {
    return tl::make_unexpected(core::Error{"memory: " + needed_text + ", but only " +
                                           std::to_string(huge_mib) +
                                           " MiB of hugepages are free"});
  }
  MemoryChoice choice;
  choice.hugepages = use != HugepageUse::kOff && huge_mib >= mib;
  choice.mib = mib;
  if (!choice.hugepages && host.available_bytes / kMib < mib) {
    return tl::make_unexpected(core::Error{"memory: " + needed_text + ", but only " +
                                           std::to_string(host.available_bytes / kMib) +
                                           " MiB are available"});
  }
  choice.explanation = std::to_string(mib) + " MiB (" + list_parts(need) + ") in " +
                       (choice.hugepages ? "hugepages" : "ordinary pages");
  return choice;
}

std::uint32_t mbufs_needed(const PoolNeed& need) noexcept {
  constexpr std::uint64_t kXdpRings = 2048 + 2048;  // fill and completion ring of net_af_xdp
  constexpr std::uint64_t kCache = 512 * 3 / 2;     // per-lcore cache, flushed at 1.5 times its size
  const std::uint64_t pairs = std::uint64_t{need.workers} * (need.workers - 1);
  std::uint64_t count = pairs * need.handover_ring +
                        std::uint64_t{need.workers} * (need.held_per_worker + kCache);
  for (const PoolNeed::Port& port : need.ports) {
    count += std::uint64_t{port.queues} *
             (port.rx_descriptors + port.tx_descriptors + (port.af_xdp ? kXdpRings : 0));
    count += std::uint64_t{2} * need.workers * need.tap_ring;
  }
  count += count / 4;
  std::uint64_t power = 8192;
  while (power - 1 < count && power < (std::uint64_t{1} << 24)) {
    power *= 2;
  }
  return static_cast<std::uint32_t>(power - 1);
}

}  // namespace sluice::dpdk
