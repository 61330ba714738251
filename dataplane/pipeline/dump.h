#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "dataplane/core/net/address.h"
#include "dataplane/pipeline/worker_view.h"

namespace sluice::pipeline {

// Dump of connections (F93)
//
// The control side never looks into a worker's table. It puts a request into the worker's mailbox;
// the worker copies the entries at the next 64 indices into it at its next poll and says where to
// go on. A connection keeps its index while it lives, so consecutive pages show each one that lives
// through the dump exactly once. A slow reader costs the worker nothing, and memory is one page.

/// Entries a worker looks at in one poll.
inline constexpr std::uint32_t kDumpPage = 64;

/// One mailbox per worker.
/// Thread: request(), done(), page() — one control thread at a time; the rest — the worker. The
/// state word hands the other fields over (release/acquire), so they need not be atomic.
class DumpMailbox {
 public:
  struct Page {
    core::Family family = core::Family::kIpv4;
    std::uint32_t cursor = 0;  ///< request: where to begin
    std::uint32_t next = 0;    ///< answer: where to go on
    bool last = false;         ///< answer: nothing after this page
    std::uint32_t count = 0;
    std::array<ConnectionRow, kDumpPage> rows;
  };

  /// Precondition: no request is open.
  void request(core::Family family, std::uint32_t cursor) noexcept {
    page_.family = family;
    page_.cursor = cursor;
    page_.count = 0;
    state_.store(State::kRequested, std::memory_order_release);
  }
  [[nodiscard]] bool done() const noexcept {
    return state_.load(std::memory_order_acquire) == State::kDone;
  }
  /// Precondition: done().
  [[nodiscard]] const Page& page() const noexcept { return page_; }

  /// @return the page to fill, nullptr: nobody asked.
  [[nodiscard]] Page* open() noexcept {
    return state_.load(std::memory_order_acquire) == State::kRequested ? &page_ : nullptr;
  }
  void answer() noexcept { state_.store(State::kDone, std::memory_order_release); }

 private:
  enum class State : std::uint32_t { kIdle, kRequested, kDone };
  Page page_;
  alignas(64) std::atomic<State> state_{State::kIdle};
};

/// True when a row passes the filter (its `limit` is the caller's to count).
[[nodiscard]] bool matches(const ConnectionFilter& filter, const ConnectionRow& row) noexcept;

/// Reads all connections of one worker, page by page.
/// @param wait  called until the page is there; returns false to give up (the worker has stopped).
/// @param row   returns false to stop.
/// @return false: stopped or given up.
template <class Wait, class Row>
bool dump_worker(DumpMailbox& mailbox, Wait&& wait, Row&& row) {
  for (const core::Family family : {core::Family::kIpv4, core::Family::kIpv6}) {
    for (std::uint32_t cursor = 0;;) {
      mailbox.request(family, cursor);
      while (!mailbox.done()) {
        if (!wait()) {
          return false;
        }
      }
      const DumpMailbox::Page& page = mailbox.page();
      for (std::uint32_t i = 0; i < page.count; ++i) {
        if (!row(page.rows[i])) {
          return false;
        }
      }
      if (page.last) {
        break;
      }
      cursor = page.next;
    }
  }
  return true;
}

}  // namespace sluice::pipeline
