#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "dataplane/core/net/address.h"

namespace sluice::core {

// Maglev: a table of slots, each naming one candidate; the hash of a flow says the slot
//
// Every candidate has an own order of all slots (offset, offset + skip, offset + 2 skip, ... modulo
// the size). The candidates take turns; in its turn one takes the first slot of its order that is
// still free. So shares are equal to a slot, and since the orders do not depend on who else is
// there, one that comes or goes moves few slots of the others.
//
// Weights: the heaviest takes a slot in every round, one of weight w in w of `heaviest` rounds,
// spread evenly. A positive weight gets a slot in the first round.
//
// Offset and skip are hashes of address and port with fixed seeds, and the turns go by address and
// port: every node makes the same table, whatever the order of the list (F10, F30).
//
// Source: Eisenbud et al., "Maglev: A Fast and Reliable Software Network Load Balancer", NSDI 2016,
// section 3.4. The size is a prime above 100 times the number of candidates there.

/// One candidate's order of the slots.
struct MaglevOrder {
  std::uint32_t offset = 0;  ///< below the table size
  std::uint32_t skip = 1;    ///< 1..size-1, coprime to the size (any, as the size is prime)
  std::uint32_t weight = 1;  ///< 0: no slot
};

/// The sizes a Service may ask for: primes. A size must not follow the number of candidates:
/// crossing from one size to the next would move nearly every flow.
inline constexpr std::array<std::uint32_t, 5> kMaglevSizes = {1021, 4093, 16381, 65521, 131071};
inline constexpr std::uint32_t kMaglevDefaultSize = 16381;

/// Marks a slot of a table without candidates.
inline constexpr std::uint16_t kMaglevNobody = 0xffff;

[[nodiscard]] MaglevOrder maglev_order(const IpAddress& address, std::uint16_t port,
                                       std::uint32_t weight, std::uint32_t size) noexcept;

/// @param orders in the order of their turns; fewer than 65,535. With more than `size` of them the
///               last get no slot.
/// @return for each of `size` slots an index into `orders`; kMaglevNobody if all weights are 0.
[[nodiscard]] std::vector<std::uint16_t> maglev_table(std::span<const MaglevOrder> orders,
                                                      std::uint32_t size);

/// The slot of a hash. The high half decides, without a division.
[[nodiscard]] constexpr std::uint32_t maglev_slot(std::uint64_t hash, std::size_t size) noexcept {
  return static_cast<std::uint32_t>((hash >> 32) * size >> 32);
}

}  // namespace sluice::core
