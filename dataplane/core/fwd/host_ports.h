#pragma once

#include <cstdint>
#include <optional>

#include "dataplane/core/fwd/forwarding_table.h"

namespace sluice::core {

struct PortRange {
  std::uint16_t first = 0;  ///< host order, inclusive
  std::uint16_t last = 0;
  bool operator==(const PortRange&) const = default;
};

/// Ports that a kernel may masquerade to beside workers: the longer part of 1024..65535 without those
/// of the workers' source translation. nullopt: any, because workers have addresses of their own.
[[nodiscard]] inline std::optional<PortRange> host_ports(const NodePart& node,
                                                         Family family) noexcept {
  constexpr std::uint16_t kLowest = 1024;
  constexpr std::uint16_t kHighest = 65535;
  const int below = node.snat_first_port - kLowest;
  const int above = kHighest - node.snat_last_port;
  const bool shared = node.of(family).snat_addresses.empty() && node.snat_first_port != 0;
  if (!shared || (below <= 0 && above <= 0)) {
    return std::nullopt;
  }
  return below >= above
             ? PortRange{kLowest, static_cast<std::uint16_t>(node.snat_first_port - 1)}
             : PortRange{static_cast<std::uint16_t>(node.snat_last_port + 1), kHighest};
}

}  // namespace sluice::core
