#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

#include "dataplane/core/conn/entry.h"

namespace sluice::core {

/// What a key leads to: entry << 1 | direction, as stored in the index.
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
};

/// Key -> KeyData, one per worker and family. dpdk::RteHashIndex in production, MapIndex
/// (test/support) in pure tests. `hash` is XXH3 of the key with the table's seed.
template <class T, class Key>
concept KeyIndex = requires(T index, const Key& key, const Key* const* keys, std::uint32_t hash,
                            const std::uint32_t* hashes, std::uint32_t n, KeyData data,
                            KeyData* out) {
  /// Looks up n <= 32 keys. @return bit i set: keys[i] found, out[i] is valid.
  { index.find_bulk(keys, hashes, n, out) } noexcept -> std::same_as<std::uint64_t>;
  /// Precondition: key is absent. @return false: no room.
  { index.insert(key, hash, data) } noexcept -> std::same_as<bool>;
  { index.erase(key, hash) } noexcept -> std::same_as<bool>;
};

}  // namespace sluice::core
