#pragma once

#ifdef __SSE2__
#include <immintrin.h>
#endif

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace sluice::pipeline {

// Theory of operation
//
// Whose a packet is costs a lookup that misses and the owner procedure. A worker that has found it
// out for one packet of a flow remembers the answer for the next ones: 16 bits, a tag of the key's
// hash and the worker. Eight places make a set, which the low bits of the hash choose; they are
// compared at once. A full set gives up one of its places, no matter which.
//
// The answers are hints. Flows of equal set and tag share one, flows end, tables change: whoever
// gets a packet by a hint looks it up and sends it back when it does not have it (stage_steer.h).
// From then on its place says that there is no answer: a packet that comes back is overtaken by the
// next one of its flow, so that must not happen again and again.
//
// The worker takes as few bits as the group needs, the tag the others, and from 2^16 sets on the
// tag has bits of the set. In a full cache one flow in 2,000 finds another one's answer with two
// workers and a million connections, one in 500 in the largest cache, one in 64 with 128 workers.

/// Where flows of others are served. Thread: the one worker it belongs to.
class SteeringCache {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  /// Two places for each of both keys of a connection of one family, in a large cache one: two
  /// bytes for each connection that a worker can have of either family.
  /// @param connections  of one worker and family. @return 0: a worker alone needs none.
  [[nodiscard]] static constexpr std::size_t memory_bytes(std::size_t workers,
                                                          std::uint32_t connections) noexcept {
    const std::uint64_t places = std::bit_ceil(std::uint64_t{connections} * 2);
    const std::uint64_t sets = std::max(std::min(places * 2 / kWays, kManySets), places / kWays);
    return workers < 2 ? 0 : std::clamp(sets, kLeastSets, kMostSets) * kSetBytes;
  }

  /// @param memory  of memory_bytes(), aligned to 16; content does not matter; outlives the cache.
  ///                Less than kLeastSets sets: nothing is remembered.
  SteeringCache(std::size_t own, std::size_t workers, std::span<std::byte> memory) noexcept
      : own_(static_cast<std::uint16_t>(own)),
        worker_mask_(static_cast<std::uint16_t>(std::bit_ceil(workers) - 1)) {
    const std::size_t sets = std::bit_floor(memory.size() / kSetBytes);
    if (workers > 1 && sets >= kLeastSets) {
      places_ = reinterpret_cast<std::uint16_t*>(memory.data());
      set_mask_ = static_cast<std::uint32_t>(sets - 1);
      std::fill_n(places_, sets * kWays, std::uint16_t{0});
    }
  }

  [[nodiscard]] bool exists() const noexcept { return places_ != nullptr; }

  // Precondition of the rest: exists().

  // Always inline: GCC 12 takes a function that only prefetches for one without effect and drops
  // the call.
  [[gnu::always_inline]] void prefetch(std::uint32_t hash) const noexcept {
    __builtin_prefetch(set_of(hash));
  }
  /// @param hash  of a flow's key. @return the worker that serves it, or kNone.
  [[nodiscard, gnu::always_inline]] std::uint32_t find(std::uint32_t hash) const noexcept {
    const std::uint16_t* set = set_of(hash);
    const std::uint32_t places = places_of(set, hash);
    if (places == 0) {
      return kNone;
    }
    const auto code = static_cast<std::uint16_t>(set[std::countr_zero(places)] & worker_mask_);
    return code == kNoAnswer ? kNone : code == own_ ? 0 : code;
  }
  /// Precondition: `worker` is not this one. Nothing where ignore() was called.
  void keep(std::uint32_t hash, std::size_t worker) noexcept {
    std::uint16_t* set = set_of(hash);
    const std::uint32_t known = places_of(set, hash);
    const std::uint32_t free = empty_places(set);
    const std::uint32_t at = known != 0  ? static_cast<std::uint32_t>(std::countr_zero(known))
                             : free != 0 ? static_cast<std::uint32_t>(std::countr_zero(free))
                                         : turn_++ % kWays;
    if (known != 0 && (set[at] & worker_mask_) == kNoAnswer) {
      return;
    }
    // Its own number is free to stand for worker 0, whose number says that there is no answer.
    set[at] = static_cast<std::uint16_t>(tag_of(hash) | (worker == 0 ? own_ : worker));
  }
  /// As if nothing had been remembered.
  void forget(std::uint32_t hash) noexcept { set_all(hash, 0); }
  /// No answer any more for flows of this place, until it is forgotten or given up.
  void ignore(std::uint32_t hash) noexcept {
    set_all(hash, static_cast<std::uint16_t>(tag_of(hash) | kNoAnswer));
  }

 private:
  static constexpr std::uint32_t kWays = 8;
  static constexpr std::size_t kSetBytes = kWays * sizeof(std::uint16_t);
  static constexpr std::uint64_t kLeastSets = 64;
  static constexpr std::uint64_t kManySets = 1 << 18;  ///< 4 MiB
  static constexpr std::uint64_t kMostSets = 1 << 20;  ///< 16 MiB; the tag needs some bits
  static constexpr std::uint16_t kNoAnswer = 0;        ///< in the bits of the worker

  [[nodiscard]] std::uint16_t* set_of(std::uint32_t hash) const noexcept {
    return places_ + std::size_t{hash & set_mask_} * kWays;
  }
  /// Never 0: a place of 0 is empty.
  [[nodiscard]] std::uint16_t tag_of(std::uint32_t hash) const noexcept {
    const std::uint32_t tag = hash >> 16 & ~std::uint32_t{worker_mask_};
    return static_cast<std::uint16_t>(tag != 0 ? tag : worker_mask_ + 1u);
  }
  void set_all(std::uint32_t hash, std::uint16_t value) noexcept {
    std::uint16_t* set = set_of(hash);
    for (std::uint32_t places = places_of(set, hash); places != 0; places &= places - 1) {
      set[std::countr_zero(places)] = value;
    }
  }

#ifdef __SSE2__
  /// One bit for each place of this tag.
  [[nodiscard, gnu::always_inline]] std::uint32_t places_of(const std::uint16_t* set,
                                                            std::uint32_t hash) const noexcept {
    const __m128i all = _mm_load_si128(reinterpret_cast<const __m128i*>(set));
    const __m128i workers = _mm_set1_epi16(static_cast<short>(worker_mask_));
    const __m128i tags = _mm_andnot_si128(workers, all);
    return bits_of(_mm_cmpeq_epi16(tags, _mm_set1_epi16(static_cast<short>(tag_of(hash)))));
  }
  [[nodiscard]] static std::uint32_t empty_places(const std::uint16_t* set) noexcept {
    const __m128i all = _mm_load_si128(reinterpret_cast<const __m128i*>(set));
    return bits_of(_mm_cmpeq_epi16(all, _mm_setzero_si128()));
  }
  [[nodiscard, gnu::always_inline]] static std::uint32_t bits_of(__m128i places) noexcept {
    return static_cast<std::uint32_t>(
        _mm_movemask_epi8(_mm_packs_epi16(places, _mm_setzero_si128())));
  }
#else
  [[nodiscard]] std::uint32_t places_of(const std::uint16_t* set,
                                        std::uint32_t hash) const noexcept {
    std::uint32_t places = 0;
    for (std::uint32_t i = 0; i < kWays; ++i) {
      places |= (set[i] & ~worker_mask_) == tag_of(hash) ? 1u << i : 0;
    }
    return places;
  }
  [[nodiscard]] static std::uint32_t empty_places(const std::uint16_t* set) noexcept {
    std::uint32_t places = 0;
    for (std::uint32_t i = 0; i < kWays; ++i) {
      places |= set[i] == 0 ? 1u << i : 0;
    }
    return places;
  }
#endif

  std::uint16_t* places_ = nullptr;  ///< null: no cache
  std::uint32_t set_mask_ = 0;
  std::uint32_t turn_ = 0;  ///< whose place is given up next
  std::uint16_t own_;
  std::uint16_t worker_mask_;  ///< bits of a place that say the worker
};

/// Whether enough packets of late were another worker's that asking first pays: it costs those that
/// are not about a tenth of what it saves the others.
class SteeringShare {
 public:
  /// @param window  frames of which the share is taken.
  explicit SteeringShare(std::uint32_t window) noexcept : window_(window) {}

  /// To be told of each burst. @param elsewhere  packets handed over so far, ever.
  void received(std::size_t frames, std::uint64_t elsewhere) noexcept {
    frames_ += static_cast<std::uint32_t>(frames);
    if (frames_ >= window_) {
      pays_ = (elsewhere - elsewhere_) * (pays_ ? 16 : 8) >= frames_;
      ever_ = ever_ || pays_;
      elsewhere_ = elsewhere;
      frames_ = 0;
    }
  }
  [[nodiscard]] bool pays() const noexcept { return pays_; }
  /// It has paid at some time, so something may be remembered.
  [[nodiscard]] bool ever() const noexcept { return ever_; }

 private:
  std::uint32_t window_;
  std::uint32_t frames_ = 0;  ///< of this window
  bool pays_ = false;
  bool ever_ = false;
  std::uint64_t elsewhere_ = 0;  ///< when it began
};

}  // namespace sluice::pipeline
