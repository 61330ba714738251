#pragma once

#include <string>
#include <vector>

#include "dataplane/core/fwd/forwarding_table.h"
#include "kni/nftables/ruleset.h"

namespace sluice::kni::nft {

/// A candidate list as slots of a map: uniform, or each endpoint as often as its weight says.
struct SlotList {
  std::vector<core::EndpointIndex> slots;
  /// Weights were rounded to fit kMostSlots.
  bool rounded = false;
};
/// Slots that one weighted list may have.
inline constexpr std::uint32_t kMostSlots = 1024;

/// @param list  one of the block's candidate lists. @param weighted  else uniform.
[[nodiscard]] SlotList make_slots(const core::ServicePort& service,
                                  const std::vector<core::EndpointIndex>& list, bool weighted);

}  // namespace sluice::kni::nft
