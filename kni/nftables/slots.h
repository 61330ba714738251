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

// Slots are picked among a power of two of places, at least kLeastPlaces. The list is there as often
// as it goes in, so the first half of the places is taken, and more. A pick that meets an empty
// place is made again, so every slot is as likely; one connection in 256 at most meets kAttempts of
// them and picks in the first half. Thus an endpoint that comes or goes
// mostly changes slots and not the number of places, and with it no verdict map: for a change of
// one the kernel validates every rule and every element behind it. Maglev tables have no empty
// place, and the same size whatever happens to the endpoints.

/// Fewest places of a list that is not empty.
inline constexpr std::uint32_t kLeastPlaces = 4;
/// How often a slot is picked among all places.
inline constexpr std::uint32_t kAttempts = 8;

struct SlotList {
  std::vector<core::EndpointIndex> slots;
  std::uint32_t places = 0;  ///< to pick among; the first slots.size() of them are taken
  /// Weights were rounded to fit kMostSlots.
  bool rounded = false;
};
/// Slots that one weighted list may have.
inline constexpr std::uint32_t kMostSlots = 1024;
/// Slots of a Maglev table of a Service that names no size: each is an element in the kernel.
inline constexpr std::uint32_t kMaglevSlots = 1021;

/// Slots of the Maglev tables of this Service here; less than it asks for where local slots begin.
[[nodiscard]] std::uint32_t maglev_slots_of(const core::ServicePort& service) noexcept;

/// May some of so many places be empty?
[[nodiscard]] bool may_have_empty(std::uint32_t places) noexcept;

/// @param list  one of the block's candidate lists.
[[nodiscard]] SlotList make_slots(const core::ServicePort& service,
                                  const std::vector<core::EndpointIndex>& list, Spread spread);

}  // namespace sluice::kni::nft
