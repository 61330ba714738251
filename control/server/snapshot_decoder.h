#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "control/model/model.h"
#include "proto/codec.h"
#include "sluice/v1/cluster.pb.h"

namespace sluice::server {

// Theory of operation
//
// To read a page of a snapshot from the wire costs a third of what decoding and checking it does.
// So the thread of the call reads, a second one decodes, and when pages pile up the first one
// decodes too. Pages become part of the state in the order they came, whoever decoded them, so that
// the outcome (which of two objects of one name stays, which errors come first) does not depend on
// who was faster. A snapshot of one page starts no thread.

/// Decodes the pages of one snapshot into a state. Thread: the public calls one.
class SnapshotDecoder {
 public:
  SnapshotDecoder();
  ~SnapshotDecoder();
  SnapshotDecoder(const SnapshotDecoder&) = delete;
  SnapshotDecoder& operator=(const SnapshotDecoder&) = delete;

  /// No page becomes part of the state after the one that made the errors so many. Before take().
  void limit_errors(std::size_t most) { max_errors_ = most; }
  /// An empty message to read into; valid until the next call, or until taken.
  v1::ReplaceSnapshotRequest* fresh();
  /// Takes the objects of the message that fresh() gave last. Decodes some itself while too many
  /// pages wait.
  /// @param bytes  the message's size on the wire.
  void take(std::size_t bytes);
  /// True when further pages change nothing; it may come true a few pages late.
  [[nodiscard]] bool enough_errors();
  /// Waits for the pages taken; then state() and errors() hold what came of them, and the memory
  /// of the pages is free. Throws what decoding threw.
  void finish();

  /// Wire size of the pages that nobody decodes yet.
  [[nodiscard]] std::size_t waiting_bytes();
  /// Pages that are kept to be read into again.
  [[nodiscard]] std::size_t idle_pages();

  [[nodiscard]] model::ClusterState& state() { return state_; }
  [[nodiscard]] std::vector<codec::FieldError>& errors() { return errors_; }

 private:
  class Page;
  struct Decoded {
    model::ClusterState state;
    std::vector<codec::FieldError> errors;
  };
  using Lock = std::unique_lock<std::mutex>;
  void start_helper();
  void help();
  void work_once(Lock& lock);
  static Decoded decode(const v1::Objects& objects);
  void merge_what_is_next(Lock& lock);

  std::size_t max_errors_ = SIZE_MAX;
  std::unique_ptr<Page> current_;
  std::thread helper_;

  std::mutex mutex_;  ///< guards what follows but state_ and errors_, which who merges owns
  std::condition_variable moved_;
  std::deque<std::unique_ptr<Page>> waiting_;
  std::size_t waiting_bytes_ = 0;
  std::vector<std::unique_ptr<Page>> spare_;
  std::map<std::uint64_t, Decoded> decoded_;  ///< by number, not yet merged
  std::uint64_t taken_ = 0;
  std::uint64_t started_ = 0;
  std::uint64_t merged_ = 0;
  bool merging_ = false;
  bool enough_ = false;
  bool stopping_ = false;
  std::exception_ptr failed_;

  model::ClusterState state_;
  std::vector<codec::FieldError> errors_;
};

}  // namespace sluice::server
