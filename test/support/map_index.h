#pragma once

#include <cassert>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "dataplane/core/conn/key_index.h"

namespace sluice::test {

/// KeyIndex over a standard map, for tests that need no EAL. Checks the preconditions that rte_hash
/// leaves to its user.
template <class Key>
class MapIndex {
 public:
  /// @param slots  keys it takes; more are refused like a full rte_hash.
  explicit MapIndex(std::uint32_t slots = UINT32_MAX) : slots_(slots) {}

  /// Every other key is late.
  void locate(const std::uint32_t*, std::uint32_t from, std::uint32_t to,
              core::KeyPlaces& places) noexcept {
    assert(from < to && to <= core::kMaxBulk);
    places.late |= kEveryOther & core::bits_below(to) & ~core::bits_below(from);
  }
  std::uint64_t read(const Key* const* keys, const std::uint32_t*, std::uint32_t from,
                     std::uint32_t to, core::KeyPlaces&, core::KeyData* out) noexcept {
    return find_some(keys, from, to, ~kEveryOther, out);
  }
  std::uint64_t read_late(const Key* const* keys, const std::uint32_t*, std::uint32_t from,
                          std::uint32_t to, core::KeyPlaces& places,
                          core::KeyData* out) noexcept {
    assert(from < to);
    return find_some(keys, from, to, places.late, out);
  }
  bool find(const Key& key, std::uint32_t, core::KeyData& out) noexcept {
    const auto it = map_.find(key);
    if (it == map_.end()) {
      return false;
    }
    out = it->second;
    return true;
  }

  void prefetch(std::uint32_t) const noexcept {}
  void prefetch_change(std::uint32_t) const noexcept {}
  void prefetch_moves(std::uint32_t) const noexcept {}
  void prefetch_key(std::uint32_t) const noexcept {}

  bool insert(const Key& key, std::uint32_t, core::KeyData data) noexcept {
    if (map_.size() >= slots_ || refuse_next_ > 0) {
      refuse_next_ -= refuse_next_ > 0 ? 1 : 0;
      return false;
    }
    const bool fresh = map_.emplace(key, data).second;
    assert(fresh);
    return fresh;
  }

  bool erase(const Key& key, std::uint32_t) noexcept { return map_.erase(key) == 1; }

  [[nodiscard]] std::size_t size() const noexcept { return map_.size(); }
  /// The next n inserts find no place.
  void refuse_next(int n) noexcept { refuse_next_ = n; }
  /// All keys begin alike from now on: bulk lookups say for each what one of them leads to.
  void mistake_all_for(std::optional<core::KeyData> data) noexcept { mistaken_ = data; }

 private:
  static constexpr std::uint64_t kEveryOther = 0xaaaa'aaaa'aaaa'aaaa;

  std::uint64_t find_some(const Key* const* keys, std::uint32_t from, std::uint32_t to,
                          std::uint64_t which, core::KeyData* out) noexcept {
    std::uint64_t mask = 0;
    for (std::uint32_t i = from; i < to; ++i) {
      const auto it = map_.find(*keys[i]);
      if ((which >> i & 1) != 0 && (mistaken_ || it != map_.end())) {
        out[i] = mistaken_.value_or(it != map_.end() ? it->second : core::KeyData{});
        mask |= std::uint64_t{1} << i;
      }
    }
    return mask;
  }

  struct Hash {
    std::size_t operator()(const Key& key) const noexcept {
      return std::hash<std::string_view>{}(
          std::string_view(reinterpret_cast<const char*>(&key), sizeof(Key)));
    }
  };
  std::uint32_t slots_;
  int refuse_next_ = 0;
  std::optional<core::KeyData> mistaken_;
  std::unordered_map<Key, core::KeyData, Hash> map_;
};

}  // namespace sluice::test
