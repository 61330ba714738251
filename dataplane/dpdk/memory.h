#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/core/sink.h"
#include "dataplane/dpdk/settings.h"

namespace sluice::dpdk {

// Memory is computed before the EAL starts: without hugepages the EAL takes one block of a given
// size and nothing more, so the number has to be right. Each user names its part; the sum, with
// room for the EAL's own bookkeeping, is what `-m` says.

/// One part of the need, for the line that explains it.
struct MemoryPart {
  std::string what;   ///< "packet pool", "connection index of worker 0"
  std::size_t bytes = 0;
};

/// "packet pool 40": in MiB, rounded up.
[[nodiscard]] std::string to_text(const MemoryPart& part);

/// What the host can give. Read by read_host_memory(); tests make their own.
struct HostMemory {
  std::size_t available_bytes = 0;      ///< MemAvailable, or what the cgroup leaves if that is less
  std::size_t free_hugepage_bytes = 0;  ///< all sizes together
};
[[nodiscard]] HostMemory read_host_memory();

/// What is left for the EAL when `beside` has taken its ordinary pages.
[[nodiscard]] HostMemory without(const HostMemory& host, const MemoryPart& beside) noexcept;

struct MemoryChoice {
  bool hugepages = false;
  std::size_t mib = 0;      ///< for -m
  std::string explanation;  ///< "612 MiB (packet pool 40, ...) in ordinary pages"
};

/// @param need      parts in bytes; the EAL's own share is added here.
/// @param limit_mib configured size, 0: as computed.
/// Errors: one line that names the number needed and the number there.
[[nodiscard]] core::Result<MemoryChoice> choose_memory(const std::vector<MemoryPart>& need,
                                                       std::size_t limit_mib, HugepageUse use,
                                                       const HostMemory& host);

/// mbufs for a set of queues and rings: what drivers, rings, taps and waiting packets can hold at
/// once, and a quarter more. Rounded up to 2^k - 1, at which a mempool wastes least.
struct PoolNeed {
  std::uint32_t workers = 1;
  std::uint32_t handover_ring = 1024;
  std::uint32_t tap_ring = 1024;
  std::uint32_t held_per_worker = 4096;  ///< waiting for a neighbour or a first fragment
  struct Port {
    std::uint32_t queues = 1;
    std::uint32_t rx_descriptors = 1024;
    std::uint32_t tx_descriptors = 1024;
    bool af_xdp = false;  ///< fill and completion rings of 2048 frames beside
  };
  std::vector<Port> ports;
};
[[nodiscard]] std::uint32_t mbufs_needed(const PoolNeed& need) noexcept;

}  // namespace sluice::dpdk
