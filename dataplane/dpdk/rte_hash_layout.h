#pragma once

#ifdef __AVX2__
#include <immintrin.h>
#endif

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <rte_hash.h>
#include <rte_ring.h>

#include "dataplane/core/conn/key_index.h"

namespace sluice::dpdk {

// Theory of operation
//
// What a key meets in an rte_hash lies in three places: its two buckets, and the slot that holds
// the key. rte_hash asks for none of them before it needs it, and a new key costs a wait for each.
// This is what is known of where they lie, so that a worker asks for them while it has other work.
//
// A lookup by rte_hash reads both buckets of every key, though nearly all keys lie in their first
// one. Lookups are done here instead: the second bucket is read when the first one shows nothing.
// So is the answer that a new key is not there, which takes rte_hash ten times as long.
//
// rte_hash also puts a key into its first bucket whenever it can, and when that one is full moves
// other keys about until it is not, never looking whether the second one has room. In a table that
// is nine tenths full that is every other key, and each search reads buckets that no cache holds.
// The second bucket is the first one xor the upper half of the hash, and the other way round: a
// hash whose lower half is changed by its upper half names the same two buckets in the other order
// (other_order()), and a key added by the one is found and deleted by the other.
//
// None of that is promised by rte_hash, and answers depend on it. find_layout() tries all of it on
// the empty table, with keys that share buckets, signatures or all bytes but one, that are moved
// and that are deleted, against the answers of rte_hash. A table that does not behave so gets no
// layout: then rte_hash does all lookups, every key is added by its own hash and nothing is
// prefetched. Where free slots come from is tried as well; they are asked for as a hint only.

/// 8 keys of an rte_hash: 16 bits of their hashes, and the slots they lie in.
struct alignas(64) RteHashBucket {
  static constexpr std::uint32_t kKeys = 8;
  std::uint16_t signatures[kKeys];
  std::uint32_t slots[kKeys];  ///< 0: free
  std::byte rest[16];

  [[nodiscard, gnu::always_inline]] std::uint32_t free() const noexcept {
#ifdef __AVX2__
    const __m256i all = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(slots));
    const __m256i none = _mm256_cmpeq_epi32(all, _mm256_setzero_si256());
    const int places = _mm256_movemask_ps(_mm256_castsi256_ps(none));
    return static_cast<std::uint32_t>(std::popcount(static_cast<unsigned>(places)));
#else
    std::uint32_t n = 0;
    for (const std::uint32_t slot : slots) {
      n += slot == 0 ? 1 : 0;
    }
    return n;
#endif
  }
  /// Places of keys whose hash begins so, a bit each; also where one has been.
  [[nodiscard, gnu::always_inline]] std::uint32_t places_of(
      std::uint16_t signature) const noexcept {
#ifdef __AVX2__
    const __m128i all = _mm_loadu_si128(reinterpret_cast<const __m128i*>(signatures));
    const __m128i equal = _mm_cmpeq_epi16(all, _mm_set1_epi16(static_cast<short>(signature)));
    return static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_packs_epi16(equal, equal))) & 0xff;
#else
    std::uint32_t places = 0;
    for (std::uint32_t i = 0; i < kKeys; ++i) {
      places |= signatures[i] == signature ? 1u << i : 0;
    }
    return places;
#endif
  }
};
static_assert(sizeof(RteHashBucket) == 64);

/// Compares keys of 16 n bytes, at any address.
template <std::size_t kLength>
[[nodiscard, gnu::always_inline]] inline bool is_same_key(const void* a, const void* b) noexcept {
  static_assert(kLength % 16 == 0);
#ifdef __AVX2__
  const auto* left = static_cast<const __m128i*>(a);
  const auto* right = static_cast<const __m128i*>(b);
  __m128i differs = _mm_setzero_si128();
  for (std::size_t i = 0; i < kLength / 16; ++i) {
    differs = _mm_or_si128(differs,
                           _mm_xor_si128(_mm_loadu_si128(left + i), _mm_loadu_si128(right + i)));
  }
  return _mm_testz_si128(differs, differs) != 0;
#else
  return std::memcmp(a, b, kLength) == 0;
#endif
}

/// Names the same buckets as `hash`, the second one first.
[[nodiscard]] constexpr std::uint32_t other_order(std::uint32_t hash) noexcept {
  return hash ^ hash >> 16;
}

/// Where the parts of one rte_hash lie, and lookups in it. Thread: the one that uses the hash.
class RteHashLayout {
 public:
  /// Knows nothing: prefetches nothing, leaves every hash as it is.
  RteHashLayout() noexcept = default;

  /// Knows buckets and keys: find() and find_bulk() may be called.
  [[nodiscard]] explicit operator bool() const noexcept { return buckets_ != nullptr; }
  /// Knows too which slots are given out next.
  [[nodiscard]] bool knows_free_slots() const noexcept { return free_slots_ != nullptr; }

  /// Asks for the bucket that a key of this hash is in, nearly always.
  // Always inline: GCC 12 takes a function that only prefetches for one without effect and drops
  // the call.
  [[gnu::always_inline]] void prefetch(std::uint32_t hash) const noexcept {
    if (buckets_ != nullptr) [[likely]] {
      __builtin_prefetch(buckets_ + first(hash));
    }
  }

  /// Asks for both buckets that a key of this hash can be in.
  [[gnu::always_inline]] void prefetch_both(std::uint32_t hash) const noexcept {
    if (buckets_ != nullptr) [[likely]] {
      __builtin_prefetch(buckets_ + first(hash));
      __builtin_prefetch(buckets_ + second(hash));
    }
  }

  /// False: no key of this hash is in the table. Precondition: the layout is known.
  [[nodiscard, gnu::always_inline]] bool may_hold(std::uint32_t hash) const noexcept {
    const auto signature = static_cast<std::uint16_t>(hash >> 16);
    return buckets_[first(hash)].places_of(signature) != 0 ||
           buckets_[second(hash)].places_of(signature) != 0;
  }

  /// Looks up one key; new keys, which are not there, above all. Precondition: the layout is known.
  /// @return false: absent, `out` is untouched.
  template <class Key>
  [[nodiscard, gnu::always_inline]] bool find(const Key& key, std::uint32_t hash,
                                              core::KeyData& out) const noexcept {
    return may_hold(hash) && search(key, hash, out);
  }

  /// Looks up 1..kMaxBulk keys. Precondition: the layout is known.
  /// @return bit i set: keys[i] found, out[i] is valid.
  template <class Key>
  [[nodiscard]] std::uint64_t find_bulk(const Key* const* keys, const std::uint32_t* hashes,
                                        std::uint32_t n, core::KeyData* out) const noexcept {
    std::array<const std::byte*, core::kMaxBulk> at;
    find_slots(hashes, n, at.data());
    std::uint64_t hits = 0;
    for (std::uint32_t i = 0; i < n; ++i) {
      // Slot 0 is nobody's: a free place has it.
      const bool found = at[i] > keys_ && is_same_key<sizeof(Key)>(at[i] + kKeyAt, keys[i]);
      if (found) [[likely]] {
        out[i].raw = data_at(at[i]);
        hits |= std::uint64_t{1} << i;
      } else if (at[i] != nullptr && search(*keys[i], hashes[i], out[i])) {
        hits |= std::uint64_t{1} << i;
      }
    }
    return hits;
  }

  /// The hash to add a new key by: its own as long as its first bucket has room to spare, so that
  /// most keys are found at the first look; else by the bucket with more room. When both are full,
  /// rte_hash will look for one with room among those that the keys of the first may move to, in
  /// turn: the first of them are asked for here, at once.
  [[nodiscard, gnu::always_inline]] std::uint32_t roomier(std::uint32_t hash) const noexcept {
    if (buckets_ == nullptr) {
      return hash;
    }
    const RteHashBucket& bucket = buckets_[first(hash)];
    const std::uint32_t free = bucket.free();
    if (free > 1) [[likely]] {
      return hash;
    }
    const std::uint32_t others = buckets_[second(hash)].free();
    if (others > free) {
      return other_order(hash);
    }
    if (free == 0) {
      for (std::uint32_t i = 0; i < kMoves; ++i) {
        __builtin_prefetch(buckets_ + ((hash ^ bucket.signatures[i]) & mask_));
      }
    }
    return hash;
  }

  /// Asks for the slot of a key of this hash. Its buckets should have come.
  [[gnu::always_inline]] void prefetch_key(std::uint32_t hash) const noexcept {
    if (buckets_ == nullptr) [[unlikely]] {
      return;
    }
    const std::byte* at = first_slot(buckets_[first(hash)], hash);
    __builtin_prefetch(at != nullptr ? at : first_slot(buckets_[second(hash)], hash), 1);
  }

  /// Asks for the slot that a new key gets after `ahead` others.
  [[gnu::always_inline]] void prefetch_slot(std::uint32_t ahead) const noexcept {
    if (free_slots_ == nullptr) {
      return;
    }
    const auto* ring = reinterpret_cast<const std::uint32_t*>(free_slots_ + 1);
    __builtin_prefetch(slot_at(ring[(free_slots_->cons.head + ahead) & free_slots_->mask]), 1);
  }

 private:
  /// Of so many buckets one has room nearly always.
  static constexpr std::uint32_t kMoves = 3;
  /// A slot is the data, then the key.
  static constexpr std::size_t kKeyAt = sizeof(void*);

  friend RteHashLayout find_layout(rte_hash* hash, const char* name, std::uint32_t slots,
                                   std::size_t key_length) noexcept;
  [[nodiscard]] std::uint32_t first(std::uint32_t hash) const noexcept { return hash & mask_; }
  [[nodiscard]] std::uint32_t second(std::uint32_t hash) const noexcept {
    return other_order(hash) & mask_;
  }
  [[nodiscard]] const std::byte* slot_at(std::uint32_t slot) const noexcept {
    return keys_ + std::size_t{slot} * stride_;
  }
  [[nodiscard]] static void* data_at(const std::byte* slot) noexcept {
    void* data;
    std::memcpy(&data, slot, sizeof data);
    return data;
  }
  /// The slot of the first place of `bucket` that a key of this hash may have; nullptr: none.
  [[nodiscard, gnu::always_inline]] const std::byte* first_slot(
      const RteHashBucket& bucket, std::uint32_t hash) const noexcept {
    const std::uint32_t places = bucket.places_of(static_cast<std::uint16_t>(hash >> 16));
    return places != 0 ? slot_at(bucket.slots[std::countr_zero(places)]) : nullptr;
  }

  /// Where keys of these hashes lie, most likely; nullptr: nowhere. Asks for those slots.
  [[gnu::always_inline]] void find_slots(const std::uint32_t* hashes, std::uint32_t n,
                                         const std::byte** at) const noexcept {
    std::array<std::uint8_t, core::kMaxBulk> elsewhere;
    std::uint32_t elsewhere_size = 0;
    for (std::uint32_t i = 0; i < n; ++i) {
      at[i] = first_slot(buckets_[first(hashes[i])], hashes[i]);
      if (at[i] == nullptr) [[unlikely]] {
        __builtin_prefetch(buckets_ + second(hashes[i]));
        elsewhere[elsewhere_size++] = static_cast<std::uint8_t>(i);
      } else {
        __builtin_prefetch(at[i]);
      }
    }
    for (std::uint32_t k = 0; k < elsewhere_size; ++k) {
      const std::uint32_t i = elsewhere[k];
      at[i] = first_slot(buckets_[second(hashes[i])], hashes[i]);
      __builtin_prefetch(at[i]);
    }
  }

  template <class Key>
  [[nodiscard, gnu::noinline]] bool search(const Key& key, std::uint32_t hash,
                                           core::KeyData& out) const noexcept {
    return search_in(buckets_[first(hash)], key, hash, out) ||
           search_in(buckets_[second(hash)], key, hash, out);
  }
  template <class Key>
  [[nodiscard]] bool search_in(const RteHashBucket& bucket, const Key& key, std::uint32_t hash,
                             core::KeyData& out) const noexcept {
    std::uint32_t places = bucket.places_of(static_cast<std::uint16_t>(hash >> 16));
    for (; places != 0; places &= places - 1) {
      const std::byte* at = slot_at(bucket.slots[std::countr_zero(places)]);
      if (at != keys_ && is_same_key<sizeof(Key)>(at + kKeyAt, &key)) {
        out.raw = data_at(at);
        return true;
      }
    }
    return false;
  }

  const RteHashBucket* buckets_ = nullptr;
  std::uint32_t mask_ = 0;                ///< of bucket numbers
  const std::byte* keys_ = nullptr;       ///< slot 0, which holds no key
  std::size_t stride_ = 0;                ///< bytes of a slot
  const rte_ring* free_slots_ = nullptr;  ///< the next one first; null: not known
};

/// Finds out how an empty hash lies in memory.
/// @param name   it was created by.
/// @param slots  a power of two, one more than its entries.
/// @param key_length  of core::FlowKey4 or FlowKey6; a table of other keys has no layout.
/// Thread: main, after EAL init.
[[nodiscard]] RteHashLayout find_layout(rte_hash* hash, const char* name, std::uint32_t slots,
                                        std::size_t key_length) noexcept;

}  // namespace sluice::dpdk
