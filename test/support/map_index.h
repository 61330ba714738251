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

  std::uint64_t find_likely(const Key* const* keys, const std::uint32_t*, std::uint32_t n,
                            core::KeyData* out) noexcept {
    assert(n >= 1 && n <= core::kMaxBulk);
    std::uint64_t mask = 0;
    for (std::uint32_t i = 0; i < n; ++i) {
      const auto it = map_.find(*keys[i]);
      if (mistaken_ || it != map_.end()) {
        out[i] = mistaken_.value_or(it != map_.end() ? it->second : core::KeyData{});
        mask |= std::uint64_t{1} << i;
      }
    }
    return mask;
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
  /// All keys begin alike from now on: find_likely() says for each what one of them leads to.
  void mistake_all_for(std::optional<core::KeyData> data) noexcept { mistaken_ = data; }

 private:
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
