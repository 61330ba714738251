#pragma once

#include <array>
#include <cstdint>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace sluice::core {

namespace flow_hash_detail {
[[nodiscard]] constexpr std::uint32_t fold(std::uint64_t hash) noexcept {
  return static_cast<std::uint32_t>(hash ^ hash >> 32);
}
}  // namespace flow_hash_detail

/// Hash of a flow key (16 or 48 bytes, all defined): XXH3 with a seed drawn at every start, because
/// colliding tuples can be made for a linear hash like CRC whatever its seed (design section 5).
template <class Key>
[[nodiscard]] inline std::uint32_t flow_hash(const Key& key, std::uint64_t seed) noexcept {
  return flow_hash_detail::fold(XXH3_64bits_withSeed(&key, sizeof(Key), seed));
}

/// flow_hash() by a seed that stays.
template <class Key>
class FlowHash {
 public:
  explicit FlowHash(std::uint64_t seed) noexcept : seed_(seed) {}
  [[nodiscard]] std::uint32_t operator()(const Key& key) const noexcept {
    return flow_hash(key, seed_);
  }

 private:
  std::uint64_t seed_;
};

/// Of a key of more than 16 bytes: what XXH3 makes of the seed for each 16 of them is made once,
/// which saves a third of the instructions.
template <class Key>
  requires(sizeof(Key) > 16)
class FlowHash<Key> {
 public:
  explicit FlowHash(std::uint64_t seed) noexcept {
    XXH3_generateSecret_fromSeed(secret_.data(), seed);
  }
  [[nodiscard]] std::uint32_t operator()(const Key& key) const noexcept {
    return flow_hash_detail::fold(
        XXH3_64bits_withSecret(&key, sizeof(Key), secret_.data(), secret_.size()));
  }

 private:
  alignas(64) std::array<std::uint8_t, XXH3_SECRET_DEFAULT_SIZE> secret_;
};

}  // namespace sluice::core
