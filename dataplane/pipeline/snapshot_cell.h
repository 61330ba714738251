#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>

#include "dataplane/pipeline/packet.h"

namespace sluice::pipeline {

/// One published pointer that many workers read without locks, and the memory of what may still be
/// read. A worker calls load() once per poll; from then on it has given up every older value. The
/// publisher frees a value after every reader has loaded a later one (quiescent-state reclamation).
///
/// Memory order: publish() stores the pointer with release, load() reads it with acquire, so the
/// content is visible. load() then stores the sequence it saw with release; collect() reads it with
/// acquire, so everything the worker did with the older value happened before its destruction.
///
/// Thread: publish(), collect() — the publisher; load(r) — worker r only; park(r) as load.
template <class T>
class SnapshotCell {
 public:
  /// @param readers 1..kMaxWorkers.
  explicit SnapshotCell(std::size_t readers) : readers_(readers) {}

  /// Makes `value` current. @return its sequence number (1, 2, ...).
  std::uint64_t publish(std::unique_ptr<const T> value) {
    const std::uint64_t sequence = ++last_sequence_;
    auto node = std::make_unique<Node>(Node{sequence, std::move(value)});
    current_.store(node.get(), std::memory_order_release);
    live_.push_back(std::move(node));
    collect();
    return sequence;
  }

  /// @return the current value, nullptr before the first publish; valid until this reader's next
  /// load() or park().
  [[nodiscard]] const T* load(std::size_t reader) noexcept {
    const Node* node = current_.load(std::memory_order_acquire);
    if (node == nullptr) {
      return nullptr;
    }
    seen_[reader].value.store(node->sequence, std::memory_order_release);
    return node->value.get();
  }

  /// The reader stops reading for good (its thread ends).
  void park(std::size_t reader) noexcept {
    seen_[reader].value.store(UINT64_MAX, std::memory_order_release);
  }

  /// Frees what no reader can see any more. @return values still held, the current one included.
  std::size_t collect() {
    const std::uint64_t oldest = oldest_seen();
    while (live_.size() > 1 && live_.front()->sequence < oldest) {
      live_.pop_front();
    }
    return live_.size();
  }

  /// Smallest sequence any reader may still use; UINT64_MAX when all are parked.
  [[nodiscard]] std::uint64_t oldest_seen() const noexcept {
    std::uint64_t oldest = UINT64_MAX;
    for (std::size_t r = 0; r < readers_; ++r) {
      const auto seen = seen_[r].value.load(std::memory_order_acquire);
      oldest = seen < oldest ? seen : oldest;
    }
    return oldest;
  }

 private:
  struct Node {
    std::uint64_t sequence;
    std::unique_ptr<const T> value;
  };
  struct alignas(64) Seen {
    std::atomic<std::uint64_t> value{0};
  };
  std::size_t readers_;
  std::uint64_t last_sequence_ = 0;
  std::deque<std::unique_ptr<Node>> live_;
  alignas(64) std::atomic<const Node*> current_{nullptr};
  std::array<Seen, kMaxWorkers> seen_{};
};

}  // namespace sluice::pipeline
