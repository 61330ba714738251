#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dataplane/core/sink.h"

namespace sluice::dpdk {

/// CPUs this process may run on, ascending (the affinity mask, not a count: gaps are real).
/// Thread: any.
[[nodiscard]] std::vector<std::uint32_t> available_cores();

/// Gives each worker a CPU.
/// @param configured  CPU numbers in worker order; empty: chosen from the end of `available`, so
///                    that CPU 0, where a host does its own work, is taken last.
/// Errors: more workers than cores, a core twice, a core the host does not have (F92). The line
/// names the core and what there is.
[[nodiscard]] core::Result<std::vector<std::uint32_t>> choose_cores(
    std::uint32_t workers, std::span<const std::uint32_t> configured,
    std::span<const std::uint32_t> available);

/// EAL's --lcores value: lcore 0 is the control side on every core that no worker has (on all when
/// none is left), lcore i + 1 is worker i. Lcore ids are small whatever the CPU numbers are, so a
/// CPU above 127 works (F92).
[[nodiscard]] std::string lcores_argument(std::span<const std::uint32_t> worker_cores,
                                          std::span<const std::uint32_t> available);

/// "0-3,8": for messages.
[[nodiscard]] std::string print_cores(std::span<const std::uint32_t> cores);

}  // namespace sluice::dpdk
