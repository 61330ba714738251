#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

#include "dataplane/core/conn/entry.h"

namespace sluice::core {

/// What a key leads to: entry << 1 | direction, and whether a packet needs the second line of an
/// entry that has two. It is the data word of rte_hash (a pointer that points nowhere), so that a
/// bulk lookup writes straight into an array of these.
struct KeyData {
  void* raw = nullptr;
  static KeyData make(EntryIndex e, Direction d, bool second_line = false) noexcept {
    const auto word = static_cast<std::uintptr_t>(e) << 1 | static_cast<std::uintptr_t>(d) |
                      static_cast<std::uintptr_t>(second_line) << kSecondLineBit;
    return {reinterpret_cast<void*>(word)};
  }
  [[nodiscard]] EntryIndex entry() const noexcept {
    return static_cast<EntryIndex>(reinterpret_cast<std::uintptr_t>(raw) >> 1);
  }
  [[nodiscard]] Direction direction() const noexcept {
    return static_cast<Direction>(reinterpret_cast<std::uintptr_t>(raw) & 1);
  }
  [[nodiscard]] bool needs_second_line() const noexcept {
    return (reinterpret_cast<std::uintptr_t>(raw) >> kSecondLineBit & 1) != 0;
  }

 private:
  static constexpr unsigned kSecondLineBit = 40;  // above the 32 bits of an entry and the direction
};
static_assert(sizeof(KeyData) == sizeof(void*));

/// Keys per bulk call: a receive burst, and what rte_hash takes at once.
inline constexpr std::uint32_t kMaxBulk = 64;

/// Key -> KeyData, one per worker and family. dpdk::RteHashIndex in production, MapIndex
/// (test/support) in pure tests. `hash` is XXH3 of the key with the table's seed.
template <class T, class Key>
concept KeyIndex = requires(T index, const Key& key, const Key* const* keys, std::uint32_t hash,
                            const std::uint32_t* hashes, std::uint32_t n, KeyData data,
                            KeyData* out) {
  /// Looks up 1 <= n <= kMaxBulk keys. @return bit i set: keys[i] found, out[i] is valid.
  { index.find_bulk(keys, hashes, n, out) } noexcept -> std::same_as<std::uint64_t>;
  /// One key. @return false: absent, `out` is untouched.
  { index.find(key, hash, *out) } noexcept -> std::same_as<bool>;
  /// A key of this hash will be looked up soon. A hint.
  { index.prefetch(hash) } noexcept;
  /// A key of this hash will be added or erased soon. A hint.
  { index.prefetch_change(hash) } noexcept;
  /// A key of this hash will be erased soon; what prefetch_change() asked for has come. A hint.
  { index.prefetch_key(hash) } noexcept;
  /// Precondition: key is absent. @return false: no room.
  { index.insert(key, hash, data) } noexcept -> std::same_as<bool>;
  { index.erase(key, hash) } noexcept -> std::same_as<bool>;
};

}  // namespace sluice::core
