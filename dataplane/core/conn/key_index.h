#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>

#include "dataplane/core/conn/entry.h"

namespace sluice::core {

/// What a key leads to, in a word: entry << 1 | direction.
struct KeyData {
  std::uint32_t raw = 0;
  static constexpr KeyData make(EntryIndex e, Direction d) noexcept {
    return {static_cast<std::uint32_t>(e) << 1 | static_cast<std::uint32_t>(d)};
  }
  [[nodiscard]] constexpr EntryIndex entry() const noexcept {
    return static_cast<EntryIndex>(raw >> 1);
  }
  [[nodiscard]] constexpr Direction direction() const noexcept {
    return static_cast<Direction>(raw & 1);
  }
  bool operator==(const KeyData&) const = default;
};

/// Keys per bulk call: a receive burst, and what rte_hash takes at once.
inline constexpr std::uint32_t kMaxBulk = 64;

/// Bits 0 to n - 1. @param n  64 or more: all bits.
[[nodiscard]] constexpr std::uint64_t bits_below(std::uint32_t n) noexcept {
  return n < 64 ? (std::uint64_t{1} << n) - 1 : ~std::uint64_t{0};
}

/// What a bulk lookup knows so far of its keys.
struct KeyPlaces {
  std::array<std::uint32_t, kMaxBulk> at;  ///< the index's own
  std::uint64_t late = 0;  ///< bit i: key i is not where most keys are, and takes a step more
};

/// Key -> KeyData, one per worker and family. dpdk::RteHashIndex in production, MapIndex
/// (test/support) in pure tests. `hash` is XXH3 of the key with the table's seed.
template <class T, class Key>
concept KeyIndex = requires(T index, const Key& key, const Key* const* keys, std::uint32_t hash,
                            const std::uint32_t* hashes, std::uint32_t from, std::uint32_t to,
                            KeyPlaces& places, KeyData data, KeyData* out) {
  /// A bulk lookup of keys [from, to) of at most kMaxBulk: three steps, which may be done without
  /// reading a key. Each asks for what the next one reads, so that steps of other keys lie between
  /// them. @return bit i set: out[i] is what keys[i] leads to, or another key does: find() knows.
  /// Set by neither: keys[i] is absent. read_late() sees to those of `places.late`.
  { index.locate(hashes, from, to, places) } noexcept;
  { index.read(keys, hashes, from, to, places, out) } noexcept -> std::same_as<std::uint64_t>;
  {
    index.read_late(keys, hashes, from, to, places, out)
  } noexcept -> std::same_as<std::uint64_t>;
  /// One key. @return false: absent, `out` is untouched.
  { index.find(key, hash, *out) } noexcept -> std::same_as<bool>;
  /// A key of this hash will be looked up soon. A hint.
  { index.prefetch(hash) } noexcept;
  /// A key of this hash will be added or erased soon. A hint.
  { index.prefetch_change(hash) } noexcept;
  /// A key of this hash will be added soon; what prefetch_change() asked for has come. A hint.
  { index.prefetch_moves(hash) } noexcept;
  /// A key of this hash will be erased soon; what prefetch_change() asked for has come. A hint.
  { index.prefetch_key(hash) } noexcept;
  /// Precondition: key is absent. @return false: no room.
  { index.insert(key, hash, data) } noexcept -> std::same_as<bool>;
  { index.erase(key, hash) } noexcept -> std::same_as<bool>;
};

}  // namespace sluice::core
