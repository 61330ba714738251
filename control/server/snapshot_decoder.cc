#include "control/server/snapshot_decoder.h"

#include <google/protobuf/arena.h>

#include <system_error>
#include <utility>

#include "control/server/object_pages.h"

namespace sluice::server {
namespace {

// So many pages wait for the second thread before the first one lends a hand.
constexpr std::size_t kAhead = 2;
// Or so much: a page may have the size of the largest message.
constexpr std::size_t kAheadBytes = std::size_t{8} << 20;

}  // namespace

/// Holds one message, so that its thousands of small parts cost neither an allocation nor a free
/// each.
class SnapshotDecoder::Page {
 public:
  v1::ReplaceSnapshotRequest* fresh() {
    arena_.Reset();
    message_ = google::protobuf::Arena::CreateMessage<v1::ReplaceSnapshotRequest>(&arena_);
    return message_;
  }
  [[nodiscard]] const v1::Objects& objects() const { return message_->objects(); }
  std::size_t bytes = 0;  ///< of the message on the wire

 private:
  static constexpr std::size_t kFirstBlock = 1u << 20;  // most pages fit; the rest is allocated
  static google::protobuf::ArenaOptions options(char* block) {
    google::protobuf::ArenaOptions options;
    options.initial_block = block;
    options.initial_block_size = kFirstBlock;
    return options;
  }
  std::unique_ptr<char[]> block_ = std::make_unique_for_overwrite<char[]>(kFirstBlock);
  google::protobuf::Arena arena_{options(block_.get())};
  v1::ReplaceSnapshotRequest* message_ = nullptr;
};

SnapshotDecoder::SnapshotDecoder() = default;

SnapshotDecoder::~SnapshotDecoder() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  moved_.notify_all();
  if (helper_.joinable()) {
    helper_.join();
  }
}

v1::ReplaceSnapshotRequest* SnapshotDecoder::fresh() {
  if (current_ == nullptr) {
    const std::lock_guard lock(mutex_);
    if (!spare_.empty()) {
      current_ = std::move(spare_.back());
      spare_.pop_back();
    }
  }
  if (current_ == nullptr) {
    current_ = std::make_unique<Page>();
  }
  return current_->fresh();
}

void SnapshotDecoder::take(std::size_t bytes) {
  if (taken_ == 1) {
    start_helper();
  }
  Lock lock(mutex_);
  current_->bytes = bytes;
  waiting_bytes_ += bytes;
  waiting_.push_back(std::move(current_));
  ++taken_;
  moved_.notify_all();
  const std::size_t ahead = helper_.joinable() ? kAhead : 0;
  while (waiting_.size() > ahead || waiting_bytes_ > kAheadBytes) {
    work_once(lock);
  }
}

std::size_t SnapshotDecoder::waiting_bytes() {
  const std::lock_guard lock(mutex_);
  return waiting_bytes_;
}

std::size_t SnapshotDecoder::idle_pages() {
  const std::lock_guard lock(mutex_);
  return spare_.size() + (current_ != nullptr ? 1 : 0);
}

bool SnapshotDecoder::enough_errors() {
  const std::lock_guard lock(mutex_);
  return enough_;
}

void SnapshotDecoder::finish() {
  Lock lock(mutex_);
  while (!waiting_.empty()) {
    work_once(lock);
  }
  moved_.wait(lock, [this] { return merged_ == taken_ || failed_ != nullptr; });
  // The state may be long in use before this object goes.
  spare_.clear();
  current_.reset();
  if (failed_ != nullptr) {
    std::rethrow_exception(failed_);
  }
}

void SnapshotDecoder::start_helper() {
  try {
    helper_ = std::thread([this] { help(); });
  } catch (const std::system_error&) {
    // No thread to be had: the caller decodes all.
  }
}

void SnapshotDecoder::help() {
  Lock lock(mutex_);
  while (true) {
    moved_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (stopping_) {
      return;
    }
    work_once(lock);
  }
}

/// Decodes the oldest page that waits, and merges what has become next in order.
void SnapshotDecoder::work_once(Lock& lock) {
  std::unique_ptr<Page> page = std::move(waiting_.front());
  waiting_.pop_front();
  waiting_bytes_ -= page->bytes;
  const std::uint64_t number = started_++;
  lock.unlock();
  try {
    Decoded decoded = decode(page->objects());
    lock.lock();
    decoded_.emplace(number, std::move(decoded));
    spare_.push_back(std::move(page));
    merge_what_is_next(lock);
  } catch (...) {
    if (!lock.owns_lock()) {
      lock.lock();
    }
    failed_ = failed_ != nullptr ? failed_ : std::current_exception();
  }
  moved_.notify_all();
}

SnapshotDecoder::Decoded SnapshotDecoder::decode(const v1::Objects& objects) {
  Decoded decoded;
  add_page(objects, decoded.state, decoded.errors);
  return decoded;
}

void SnapshotDecoder::merge_what_is_next(Lock& lock) {
  while (!merging_ && !decoded_.empty() && decoded_.begin()->first == merged_) {
    merging_ = true;
    const auto next = decoded_.extract(decoded_.begin());
    const bool skip = enough_;
    lock.unlock();
    if (!skip) {
      merge_page(std::move(next.mapped().state), std::move(next.mapped().errors), state_, errors_);
    }
    const bool enough = errors_.size() >= max_errors_;
    lock.lock();
    enough_ = enough;
    merging_ = false;
    ++merged_;
  }
}

}  // namespace sluice::server
