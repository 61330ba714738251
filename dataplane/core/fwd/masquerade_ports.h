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

/// Ports that a kernel's masquerading beside workers may use: the longer part of 1024..65535
/// without those of source translation. nullopt: any port, because workers translate to addresses
/// of their own.
[[nodiscard]] inline std::optional<PortRange> masquerade_ports(const NodePart& node,
                                                               Family family) {
  constexpr std::uint16_t kLowest = 1024;
  constexpr std::uint16_t kHighest = 65535;
  if (!node.of(family).snat_addresses.empty() || node.snat_first_port == 0) {
    return std::nullopt;
  }
  const int below = node.snat_first_port - kLowest;
  const int above = kHighest - node.snat_last_port;
  if (below <= 0 && above <= 0) {
    return std::nullopt;
  }
  return below >= above ? PortRange{kLowest, static_cast<std::uint16_t>(node.snat_first_port - 1)}
                        : PortRange{static_cast<std::uint16_t>(node.snat_last_port + 1), kHighest};
}

}  // namespace sluice::core
