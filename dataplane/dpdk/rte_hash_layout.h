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

#include "dataplane/core/net/flow_key.h"

namespace sluice::dpdk {

// Theory of operation
//
// What a key meets in an rte_hash lies in three places: its two buckets, and the slot that holds
// the key. rte_hash asks for none of them before it needs it, and a new key costs a wait for each.
// This is what is known of where they lie, so that a worker asks for them while it has other work.
//
// A lookup by rte_hash reads both buckets of every key, though nearly all keys lie in their first
// one, and the key, which the caller has in its entry as well. Lookups are done here instead:
// likely_slot() goes by the hash, of which a bucket holds half, and the second bucket is read when
// the first one shows nothing. find() compares keys, for new ones above all: that they are not
// there takes rte_hash ten times as long to say.
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

/// Names the same buckets as `hash`, the second one first.
[[nodiscard]] constexpr std::uint32_t other_order(std::uint32_t hash) noexcept {
  return hash ^ hash >> 16;
}

/// Where the parts of one rte_hash lie, and lookups in it. Thread: the one that uses the hash.
class RteHashLayout {
 public:
  /// Knows nothing: prefetches nothing, leaves every hash as it is.
  RteHashLayout() noexcept = default;

  /// Knows buckets and keys: lookups may be done here.
  [[nodiscard]] explicit operator bool() const noexcept { return buckets_ != nullptr; }
  /// Knows too which slots are given out next.
  [[nodiscard]] bool knows_free_slots() const noexcept { return free_slots_ != nullptr; }

  /// Asks for the bucket that a key of this hash is in, nearly always. Where the layout is not known
  /// the mask is 0 and what is asked for is nothing.
  // Always inline: GCC 12 takes a function that only prefetches for one without effect and drops
  // the call.
  [[gnu::always_inline]] void prefetch(std::uint32_t hash) const noexcept {
    __builtin_prefetch(buckets_ + first(hash));
  }

  /// Asks for both buckets that a key of this hash can be in.
  [[gnu::always_inline]] void prefetch_both(std::uint32_t hash) const noexcept {
    __builtin_prefetch(buckets_ + first(hash));
    __builtin_prefetch(buckets_ + second(hash));
  }

  /// False: no key of this hash is in the table. Precondition: the layout is known.
  [[nodiscard, gnu::always_inline]] bool may_hold(std::uint32_t hash) const noexcept {
    const auto signature = static_cast<std::uint16_t>(hash >> 16);
    return buckets_[first(hash)].places_of(signature) != 0 ||
           buckets_[second(hash)].places_of(signature) != 0;
  }

  /// Looks up one key. Precondition: the layout is known.
  /// @return its slot; 0: absent.
  template <class Key>
  [[nodiscard, gnu::always_inline]] std::uint32_t find(const Key& key,
                                                       std::uint32_t hash) const noexcept {
    return may_hold(hash) ? search(key, hash) : 0;
  }

  /// likely_slot(): neither bucket shows the hash, so no key of it is in the table.
  static constexpr std::uint32_t kNowhere = 0xffff'ffff;

  /// The slot of the key of this hash, if there is one and no other that begins like it. Reads the
  /// first bucket, and the second where the first shows nothing. Precondition: the layout is known.
  /// @return kNowhere; 0: a place that is free now shows the hash, find() has to be asked.
  [[nodiscard, gnu::always_inline]] std::uint32_t likely_slot(std::uint32_t hash) const noexcept {
    const std::uint32_t slot = likely_slot_in_first(hash);
    return slot != kNowhere ? slot : first_slot(buckets_[second(hash)], hash);
  }
  /// The same, but the first bucket alone says so.
  [[nodiscard, gnu::always_inline]] std::uint32_t likely_slot_in_first(
      std::uint32_t hash) const noexcept {
    return first_slot(buckets_[first(hash)], hash);
  }
  /// Asks for the bucket that likely_slot() reads after the first one.
  [[gnu::always_inline]] void prefetch_second(std::uint32_t hash) const noexcept {
    __builtin_prefetch(buckets_ + second(hash));
  }

  /// The hash to add a new key by: its own as long as its first bucket has room to spare, so that
  /// most keys are found at the first look; else by the bucket with more room.
  [[nodiscard, gnu::always_inline]] std::uint32_t roomier(std::uint32_t hash) const noexcept {
    if (buckets_ == nullptr) {
      return hash;
    }
    const RteHashBucket& bucket = buckets_[first(hash)];
    const std::uint32_t free = bucket.free();
    if (free > 1) [[likely]] {
      return hash;
    }
    return buckets_[second(hash)].free() > free ? other_order(hash) : hash;
  }

  /// A key of this hash will be added. When both of its buckets, which should have come, are full,
  /// rte_hash will look for one with room among those that the keys of the first may move to, in
  /// turn: the first of them are asked for here, at once.
  [[gnu::always_inline]] void prefetch_moves(std::uint32_t hash) const noexcept {
    if (buckets_ == nullptr) [[unlikely]] {
      return;
    }
    const RteHashBucket& bucket = buckets_[first(hash)];
    if (bucket.free() != 0 || buckets_[second(hash)].free() != 0) [[likely]] {
      return;
    }
    for (std::uint32_t i = 0; i < kMoves; ++i) {
      __builtin_prefetch(buckets_ + ((hash ^ bucket.signatures[i]) & mask_), 1);
    }
  }

  /// Asks for the slot of a key of this hash. Its buckets should have come.
  [[gnu::always_inline]] void prefetch_key(std::uint32_t hash) const noexcept {
    if (buckets_ == nullptr) [[unlikely]] {
      return;
    }
    const std::uint32_t slot = likely_slot(hash);
    __builtin_prefetch(slot_at(slot != kNowhere ? slot : 0), 1);
  }

  /// Asks for the slot that a new key gets after `ahead` others. @return it; 0: not known.
  [[gnu::always_inline]] std::uint32_t prefetch_slot(std::uint32_t ahead) const noexcept {
    if (free_slots_ == nullptr) {
      return 0;
    }
    const auto* ring = reinterpret_cast<const std::uint32_t*>(free_slots_ + 1);
    const std::uint32_t slot = ring[(free_slots_->cons.head + ahead) & free_slots_->mask];
    __builtin_prefetch(slot_at(slot), 1);
    return slot;
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
  /// Of the first place of `bucket` that a key of this hash may have; kNowhere: there is none.
  [[nodiscard, gnu::always_inline]] static std::uint32_t first_slot(const RteHashBucket& bucket,
                                                                    std::uint32_t hash) noexcept {
    const std::uint32_t places = bucket.places_of(static_cast<std::uint16_t>(hash >> 16));
    return places != 0 ? bucket.slots[std::countr_zero(places)] : kNowhere;
  }

  template <class Key>
  [[nodiscard, gnu::noinline]] std::uint32_t search(const Key& key,
                                                    std::uint32_t hash) const noexcept {
    const std::uint32_t slot = search_in(buckets_[first(hash)], key, hash);
    return slot != 0 ? slot : search_in(buckets_[second(hash)], key, hash);
  }
  template <class Key>
  [[nodiscard]] std::uint32_t search_in(const RteHashBucket& bucket, const Key& key,
                                        std::uint32_t hash) const noexcept {
    std::uint32_t places = bucket.places_of(static_cast<std::uint16_t>(hash >> 16));
    for (; places != 0; places &= places - 1) {
      const std::uint32_t slot = bucket.slots[std::countr_zero(places)];
      // Slot 0 is nobody's: a free place has it.
      if (slot != 0 && core::is_same_key<sizeof(Key)>(slot_at(slot) + kKeyAt, &key)) {
        return slot;
      }
    }
    return 0;
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
