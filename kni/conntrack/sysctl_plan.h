#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace sluice::kni {

// What to write to the kernel's conntrack settings at start (rules CT-7..CT-9). Pure: reading and
// writing them is the adapter's part.

struct ConntrackSettings {
  std::uint64_t max_per_core = 32768;  ///< 0: leave the maximum alone
  std::uint64_t min = 131072;
  std::chrono::seconds tcp_established_timeout{std::chrono::hours(24)};  ///< 0: leave alone
  std::chrono::seconds tcp_close_wait_timeout{std::chrono::hours(1)};    ///< 0: leave alone
  std::chrono::seconds udp_timeout{0};                                   ///< 0: leave alone
  std::chrono::seconds udp_stream_timeout{0};                            ///< 0: leave alone
  bool tcp_be_liberal = false;  ///< false: leave alone, never written as 0
};

/// What the kernel has at present.
struct ConntrackPresent {
  std::uint64_t max = 0;
  std::uint64_t hash_size = 0;
};

struct SysctlWrite {
  std::string path;  ///< under /proc/sys, or absolute for the module parameter
  std::uint64_t value = 0;
  bool operator==(const SysctlWrite&) const = default;
};

/// The maximum never grows above this by scaling (CT-7); it wins even over a larger `min`.
inline constexpr std::uint64_t kConntrackMaxCap = 1048576;

/// CT-7: wanted net.netfilter.nf_conntrack_max; 0: leave it alone.
[[nodiscard]] std::uint64_t conntrack_max(const ConntrackSettings& settings, unsigned cpus);

/// CT-7..CT-9, in the order in which they are to be written. A failed write aborts the start.
[[nodiscard]] std::vector<SysctlWrite> plan_conntrack_sysctls(const ConntrackSettings& settings,
                                                              unsigned cpus,
                                                              const ConntrackPresent& present);

}  // namespace sluice::kni
