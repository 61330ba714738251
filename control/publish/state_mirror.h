#pragma once

#include <atomic>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>

#include "control/model/model.h"

namespace sluice::publish {

// Theory of operation
//
// Readers of the whole cluster state (snapshots on disk, GetSnapshot, the command line) must not
// hold up changes, and a copy of a large state takes tens of milliseconds. So there is one copy
// beside the owner's state, which readers bring up to date on their own threads: the owner only
// notes each delta. While an earlier reader still holds the copy, a later one makes another, also
// on its own thread. Only the first copy, and the first after a full replace, is made by the owner:
// in steps, between which it takes changes.

/// A copy of the cluster state that costs its owner nearly nothing. Thread: add(), reset(),
/// fill_some() and live() the owner's only; read() any.
class StateMirror {
 public:
  /// Deltas of more objects than this, unread, and the copy is given up.
  static constexpr std::size_t kMaxPending = 65536;

  /// The owner applied `delta` to its state.
  /// @param version  of the state after it.
  /// @return as reset(), when too much is pending; else null.
  [[nodiscard]] std::shared_ptr<const void> add(const model::Delta& delta, std::uint64_t version);
  /// The owner's state became another; nothing is mirrored until fill_some() is done.
  /// @return what is no longer needed: it takes a while to free a large state.
  [[nodiscard]] std::shared_ptr<const void> reset();
  [[nodiscard]] bool live() const { return live_; }
  /// Copies some more of the state, a tenth of a millisecond's worth. @return live().
  bool fill_some(const model::ClusterState& state);

  /// The state after everything that was added before the call; never changes. Null: not live.
  /// Throws when there is no memory for it; the next call makes up for that.
  [[nodiscard]] std::shared_ptr<const model::ClusterState> read();

 private:
  /// Objects copied in one step.
  static constexpr std::size_t kStep = 32;

  struct Note {
    std::shared_ptr<const model::Delta> delta;
    std::uint64_t version;
  };
  using Deltas = std::list<Note>;  ///< a list: to put them back takes no memory
  struct Copy {
    model::ClusterState state;
    /// Handles given out and still held. Who sees 0 may change the state: nobody but read(), which
    /// runs once at a time, makes it grow.
    std::atomic<std::size_t> readers{0};
  };

  void bring_up_to_date(std::shared_ptr<Copy>& copy, const Deltas& deltas);
  void put_back(const std::shared_ptr<Copy>& copy, Deltas& deltas);

  bool live_ = false;               ///< owner's
  std::shared_ptr<Copy> unfinished_;  ///< owner's; null: no copy is being made
  std::mutex read_mutex_;
  std::mutex mutex_;  ///< guards what follows; never held for long; taken after read_mutex_
  std::shared_ptr<Copy> copy_;
  Deltas pending_;
  std::size_t pending_objects_ = 0;
};

}  // namespace sluice::publish
