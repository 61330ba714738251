#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace sluice::pipeline {

/// Bounded queue of values with one producer and one consumer thread.
///
/// Each side keeps a copy of the other side's index and looks at the shared one only when the copy
/// says "full" or "empty", so that a steady flow moves one cache line per several elements.
///
/// Memory order: the producer writes the element, then stores `tail_` with release; the consumer
/// loads it with acquire, so it sees the element and everything the producer did before (also the
/// tables it had loaded: a packet is never handled by an older table than it was decided with).
/// `head_` the same the other way, so a slot is overwritten only after it was read.
///
/// Thread: push(), claim() and publish() producer only, pop() and consume() consumer only, size()
/// any (approximate).
template <class T>
class SpscRing {
 public:
  /// @param capacity  rounded up to a power of two, at least 2.
  explicit SpscRing(std::size_t capacity)
      : mask_(std::bit_ceil(capacity < 2 ? std::size_t{2} : capacity) - 1),
        slots_(std::make_unique<T[]>(mask_ + 1)) {}

  /// @return false: full, nothing was stored.
  [[nodiscard]] bool push(const T& value) noexcept {
    T* const place = claim();
    if (place == nullptr) {
      return false;
    }
    *place = value;
    publish();
    return true;
  }

  /// Where the next element is to be written, before the next publish(): that shows all claimed.
  /// @return nullptr: full.
  [[nodiscard]] T* claim() noexcept {
    if (claimed_ - head_seen_ > mask_) {
      head_seen_ = head_.load(std::memory_order_acquire);
      if (claimed_ - head_seen_ > mask_) {
        return nullptr;
      }
    }
    return &slots_[claimed_++ & mask_];
  }
  void publish() noexcept { tail_.store(claimed_, std::memory_order_release); }

  /// Takes up to n elements. @return how many.
  std::size_t pop(T* out, std::size_t n) noexcept {
    return consume(n, [&out](const T& value) { *out++ = value; });
  }

  /// Calls take(element) for up to n elements, in their order. @return how many.
  template <class Take>
  std::size_t consume(std::size_t n, Take&& take) noexcept {
    const std::uint64_t head = head_.load(std::memory_order_relaxed);
    if (tail_seen_ == head) {
      tail_seen_ = tail_.load(std::memory_order_acquire);
    }
    const std::uint64_t there = tail_seen_ - head;
    const std::size_t count = there < n ? static_cast<std::size_t>(there) : n;
    // Copies: take() may write anywhere, and they would be read again for each element.
    const T* const slots = slots_.get();
    const std::size_t mask = mask_;
    for (std::size_t i = 0; i < count && i < kAhead; ++i) {
      __builtin_prefetch(&slots[(head + i) & mask]);
    }
    for (std::size_t i = 0; i < count; ++i) {
      if (i + kAhead < count) {
        __builtin_prefetch(&slots[(head + i + kAhead) & mask]);
      }
      take(slots[(head + i) & mask]);
    }
    if (count != 0) {
      head_.store(head + count, std::memory_order_release);
    }
    return count;
  }

  [[nodiscard]] std::size_t capacity() const noexcept { return mask_ + 1; }
  [[nodiscard]] std::size_t size() const noexcept {
    return static_cast<std::size_t>(tail_.load(std::memory_order_acquire) -
                                    head_.load(std::memory_order_acquire));
  }

 private:
  /// Elements lie in the producer's cache; so many are fetched while others are taken. Never more
  /// than there are: the producer is about to write those.
  static constexpr std::size_t kAhead = 6;

  const std::size_t mask_;
  const std::unique_ptr<T[]> slots_;
  alignas(64) std::atomic<std::uint64_t> tail_{0};
  std::uint64_t claimed_ = 0;    // producer's: the tail of what it has begun to write
  std::uint64_t head_seen_ = 0;  // producer's copy
  alignas(64) std::atomic<std::uint64_t> head_{0};
  std::uint64_t tail_seen_ = 0;  // consumer's copy
};

}  // namespace sluice::pipeline
