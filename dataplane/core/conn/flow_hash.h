#pragma once

#include <cstdint>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace sluice::core {

/// Hash of a flow key (16 or 48 bytes, all defined): XXH3 with a seed drawn at every start, because
/// colliding tuples can be made for a linear hash like CRC whatever its seed (design section 5).
template <class Key>
[[nodiscard]] inline std::uint32_t flow_hash(const Key& key, std::uint64_t seed) noexcept {
  const std::uint64_t h = XXH3_64bits_withSeed(&key, sizeof(Key), seed);
  return static_cast<std::uint32_t>(h ^ h >> 32);
}

}  // namespace sluice::core
