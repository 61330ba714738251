#pragma once

#include <cstdint>

#include "dataplane/core/conn/entry.h"

namespace sluice::core {

/// First-in-first-out list of entries, linked through HotEntry::list_next and ColdEntry::list_prev.
/// All operations are O(1) and touch at most the neighbours. Thread: the owner of the arrays.
template <class F>
class EntryList {
 public:
  using Hot = HotEntry<F>;

  [[nodiscard]] EntryIndex head() const noexcept { return head_; }
  [[nodiscard]] EntryIndex tail() const noexcept { return tail_; }
  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }

  /// Precondition: `i` is in no list.
  void push_back(Hot* hot, ColdEntry* cold, EntryIndex i) noexcept {
    hot[at(i)].list_next = EntryIndex::kNone;
    cold[at(i)].list_prev = tail_;
    (tail_ == EntryIndex::kNone ? head_ : hot[at(tail_)].list_next) = i;
    tail_ = i;
    ++size_;
  }

  /// Precondition: `i` is in this list.
  void remove(Hot* hot, ColdEntry* cold, EntryIndex i) noexcept {
    const EntryIndex next = hot[at(i)].list_next;
    const EntryIndex prev = cold[at(i)].list_prev;
    (prev == EntryIndex::kNone ? head_ : hot[at(prev)].list_next) = next;
    (next == EntryIndex::kNone ? tail_ : cold[at(next)].list_prev) = prev;
    --size_;
    if (i == ahead_) {
      ahead_ = next;
    }
    distance_ -= prev == EntryIndex::kNone && distance_ != 0 ? 1 : 0;
  }

  /// Expiry walks from the head, and an entry tells where the next one lies: each would be waited
  /// for. This goes on by one entry, to be asked for before expiry comes to it.
  /// @return kNone: far enough for now, or at the tail.
  [[nodiscard]] EntryIndex look_ahead(const Hot* hot) noexcept {
    if (distance_ >= kFarthest) {
      return EntryIndex::kNone;
    }
    const EntryIndex next = ahead_ == EntryIndex::kNone ? head_ : hot[at(ahead_)].list_next;
    if (next != EntryIndex::kNone) {
      distance_ = ahead_ == EntryIndex::kNone ? 1 : distance_ + 1;
      ahead_ = next;
    }
    return next;
  }

 private:
  static std::uint32_t at(EntryIndex i) noexcept { return static_cast<std::uint32_t>(i); }
  EntryIndex head_ = EntryIndex::kNone;
  EntryIndex tail_ = EntryIndex::kNone;
  /// Lines of so many entries stay in a core's second cache until their turn.
  static constexpr std::uint32_t kFarthest = 1024;
  std::uint32_t size_ = 0;
  std::uint32_t distance_ = 0;          ///< from the head to `ahead_`, at most
  EntryIndex ahead_ = EntryIndex::kNone;
};

}  // namespace sluice::core
