#pragma once

#ifdef __AVX2__
#include <immintrin.h>
#endif

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <rte_hash.h>
#include <rte_ring.h>

namespace sluice::dpdk {

// Theory of operation
//
// What a key meets in an rte_hash lies in three places: its two buckets, and the slot that holds
// the key. rte_hash asks for none of them before it needs it, and a new key costs a wait for each.
// This is what is known of where they lie, so that a worker asks for them while it has other work.
//
// rte_hash also puts a key into its first bucket whenever it can, and when that one is full moves
// other keys about until it is not, never looking whether the second one has room. In a table that
// is nine tenths full that is every other key, and each search reads buckets that no cache holds.
// The second bucket is the first one xor the upper half of the hash, and the other way round: a
// hash whose lower half is changed by its upper half names the same two buckets in the other order
// (other_order()), and a key added by the one is found and deleted by the other.
//
// None of that is promised by rte_hash. find_layout() tries it on the empty table with two keys; a
// table that does not behave so gets no layout: nothing is prefetched then and every key is added
// by its own hash. Where the slots come from is tried as well; without that the buckets alone are
// known. Slots are asked for as a hint only.

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

/// Names the same buckets as `hash`, the second one first.
[[nodiscard]] constexpr std::uint32_t other_order(std::uint32_t hash) noexcept {
  return hash ^ hash >> 16;
}

/// Where the parts of one rte_hash lie. Thread: the one that uses the hash.
class RteHashLayout {
 public:
  /// Knows nothing: prefetches nothing, leaves every hash as it is.
  RteHashLayout() noexcept = default;

  /// Knows the buckets.
  [[nodiscard]] explicit operator bool() const noexcept { return buckets_ != nullptr; }
  /// Knows the slots of keys too, and which of them are given out next.
  [[nodiscard]] bool knows_slots() const noexcept { return slots_ != nullptr; }

  /// Asks for the two buckets a key of this hash can be in.
  // Always inline: GCC 12 takes a function that only prefetches for one without effect and drops
  // the call.
  [[gnu::always_inline]] void prefetch(std::uint32_t hash) const noexcept {
    if (buckets_ == nullptr) [[unlikely]] {
      return;
    }
    __builtin_prefetch(buckets_ + first(hash));
    __builtin_prefetch(buckets_ + second(hash));
  }

  /// False: no key of this hash is in the table. It is asked about new keys, which are not, and a
  /// lookup of rte_hash takes ten times as long to say so.
  [[nodiscard, gnu::always_inline]] bool may_hold(std::uint32_t hash) const noexcept {
    const auto signature = static_cast<std::uint16_t>(hash >> 16);
    return buckets_ == nullptr || buckets_[first(hash)].places_of(signature) != 0 ||
           buckets_[second(hash)].places_of(signature) != 0;
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
    if (slots_ == nullptr) {
      return;
    }
    const auto signature = static_cast<std::uint16_t>(hash >> 16);
    const RteHashBucket* bucket = &buckets_[first(hash)];
    std::uint32_t places = bucket->places_of(signature);
    if (places == 0) {
      bucket = &buckets_[second(hash)];
      places = bucket->places_of(signature);
    }
    if (places != 0) {
      prefetch_key_at(bucket->slots[std::countr_zero(places)]);
    }
  }

  /// Asks for the slot that a new key gets after `ahead` others.
  [[gnu::always_inline]] void prefetch_slot(std::uint32_t ahead) const noexcept {
    if (slots_ == nullptr) {
      return;
    }
    const auto* ring = reinterpret_cast<const std::uint32_t*>(slots_ + 1);
    prefetch_key_at(ring[(slots_->cons.head + ahead) & slots_->mask]);
  }

 private:
  /// Of so many buckets one has room nearly always.
  static constexpr std::uint32_t kMoves = 3;

  friend RteHashLayout find_layout(rte_hash* hash, const char* name, std::uint32_t slots,
                                   std::size_t key_length) noexcept;
  [[gnu::always_inline]] void prefetch_key_at(std::uint32_t slot) const noexcept {
    __builtin_prefetch(keys_ + std::size_t{slot} * stride_, 1);
  }
  [[nodiscard]] std::uint32_t first(std::uint32_t hash) const noexcept { return hash & mask_; }
  [[nodiscard]] std::uint32_t second(std::uint32_t hash) const noexcept {
    return other_order(hash) & mask_;
  }

  const RteHashBucket* buckets_ = nullptr;
  std::uint32_t mask_ = 0;            ///< of bucket numbers
  const rte_ring* slots_ = nullptr;   ///< free ones, the next one first; null: not known
  const std::byte* keys_ = nullptr;   ///< slot 0
  std::size_t stride_ = 0;            ///< bytes of a slot
};

/// Finds out how an empty hash lies in memory.
/// @param name   it was created by.
/// @param slots  a power of two, one more than its entries.
/// @param key_length  at most 64 bytes.
/// Thread: main, after EAL init.
[[nodiscard]] RteHashLayout find_layout(rte_hash* hash, const char* name, std::uint32_t slots,
                                        std::size_t key_length) noexcept;

}  // namespace sluice::dpdk
