#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::kni {

/// Local ports of TCP and UDP sockets of this network namespace within [first, last], ascending and
/// unique. Thread: any.
[[nodiscard]] std::vector<std::uint16_t> used_ports(std::uint16_t first, std::uint16_t last);

/// Ports in the text of one /proc/net/tcp-like file. Malformed lines are skipped.
[[nodiscard]] std::vector<std::uint16_t> ports_in(const std::string& table);

}  // namespace sluice::kni
