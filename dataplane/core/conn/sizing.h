#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "dataplane/core/conn/entry.h"

namespace sluice::core {

// Sizes of a connection table (one worker, one family).
//
// An index has 2^k slots; a connection takes two of them (forward and reply key). Own counting
// stops at 977/1024 (95.4 %) of the slots, where cuckoo hashing still finds places; the fraction is
// the smallest that makes 2^21 slots carry 1,000,000 connections. A slot of rte_hash costs 8 bytes
// of bucket, 4 of free-slot ring, 32 (16-byte key) or 64 (48-byte key) and 4 for what it leads to,
// an entry 64 or 128 hot and 24 cold:
//   IPv4: (64 + 24) + 2 x 48 / 0.954 = 188.6 bytes a connection (budget 192)
//   IPv6: (128 + 24) + 2 x 80 / 0.954 = 319.7 bytes a connection (budget 320)

inline constexpr std::uint64_t kFillNumerator = 977;
inline constexpr std::uint64_t kFillDenominator = 1024;
/// Smallest and largest index. 2^26 slots carry 32 M connections.
inline constexpr std::uint32_t kMinSlots = 1u << 6;
inline constexpr std::uint32_t kMaxSlots = 1u << 26;

/// Connections that an index of `slots` (a power of two) carries.
[[nodiscard]] constexpr std::uint32_t capacity_of_slots(std::uint32_t slots) noexcept {
  return static_cast<std::uint32_t>(slots / 2 * kFillNumerator / kFillDenominator);
}

/// Index slots for at least `connections`. Clamped to [kMinSlots, kMaxSlots].
[[nodiscard]] constexpr std::uint32_t slots_for(std::uint32_t connections) noexcept {
  std::uint32_t slots = kMinSlots;
  while (slots < kMaxSlots && capacity_of_slots(slots) < connections) {
    slots *= 2;
  }
  return slots;
}

/// What a table gives when asked for `connections`: rounded up to what its index carries, because
/// the index costs the same.
[[nodiscard]] constexpr std::uint32_t rounded_capacity(std::uint32_t connections) noexcept {
  return capacity_of_slots(slots_for(connections));
}

/// Bytes of the entry arrays of `capacity` connections (hot, then cold).
template <class F>
[[nodiscard]] constexpr std::size_t entry_bytes(std::uint32_t capacity) noexcept {
  return std::size_t{capacity} * (sizeof(HotEntry<F>) + sizeof(ColdEntry));
}

}  // namespace sluice::core
