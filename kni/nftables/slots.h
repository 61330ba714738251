#pragma once

#include <string>
#include <vector>

#include "dataplane/core/fwd/forwarding_table.h"
#include "kni/nftables/ruleset.h"

namespace sluice::kni::nft {

/// How a candidate list becomes slots of a map.
enum class Spread : std::uint8_t {
  kUniform,   ///< each endpoint once
  kWeighted,  ///< each as often as its weight says
  kMaglev,    ///< the slots of a Maglev table: few move when an endpoint comes or goes
};

struct SlotList {
  std::vector<core::EndpointIndex> slots;
  /// Weights were rounded to fit kMostSlots.
  bool rounded = false;
};
/// Slots that one weighted list may have.
inline constexpr std::uint32_t kMostSlots = 1024;
/// Slots of a Maglev table of a Service that names no size: each is an element in the kernel.
inline constexpr std::uint32_t kMaglevSlots = 1021;

/// Slots of the Maglev tables of this Service here; less than it asks for where local slots begin.
[[nodiscard]] std::uint32_t maglev_slots_of(const core::ServicePort& service) noexcept;

/// @param list  one of the block's candidate lists.
[[nodiscard]] SlotList make_slots(const core::ServicePort& service,
                                  const std::vector<core::EndpointIndex>& list, Spread spread);

}  // namespace sluice::kni::nft
