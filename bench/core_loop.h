#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "bench/traffic.h"
#include "dataplane/core/net/parse_fast.h"
#include "dataplane/core/net/rewrite.h"
#include "dataplane/dpdk/core_kind.h"
#include "dataplane/dpdk/rte_hash_index.h"
#include "dataplane/pipeline/translation.h"
#include "dataplane/pipeline/worker.h"

namespace sluice::bench {

/// How far a burst is taken: the cost of a stage is the difference of two.
enum class UpTo : std::uint8_t { kParse, kHash, kLookup, kState, kRewrite };

// The product's own parts in a straight line: parser with all its checks, hash, connection table,
// state and time, translation. What a Worker costs above this is the worker's: counters, steering,
// next hops, transmission.

/// Thread: one.
template <class F>
class CoreLoop {
 public:
  using Key = typename F::Key;

  [[nodiscard]] static core::Result<CoreLoop> create(std::uint32_t flows) {
    core::ConnTableConfig config;
    config.capacity = flows;
    config.hash_seed = 1;
    config.half_open_divisor = 1;
    auto store = dpdk::ConnStore<F>::create({"core"}, config);
    if (!store) {
      return tl::unexpected(store.error());
    }
    return CoreLoop(std::move(*store));
  }

  /// @return false: the table is full.
  bool add(const Key& forward, const Key& reply) noexcept {
    const auto to = core::Translation<F>::between(forward, reply.reversed());
    core::NewConn<F> conn;
    conn.forward = forward;
    conn.forward_hash = store_.table.hash(forward);
    conn.reply = reply;
    conn.l3_delta = to.l3.raw();
    conn.l4_delta = to.l4.raw();
    const auto outcome = store_.table.create(conn, kNowNs, no_release_);
    if (outcome.result() != core::CreateResult::kCreated) {
      return false;
    }
    store_.table.set_state(outcome.index(), core::ConnState::kEstablished, kNow);
    return true;
  }

  template <UpTo kUpTo>
  std::uint32_t run(const pipeline::Packet* packets, std::uint32_t n) noexcept {
    // Memory is asked as the worker asks it.
    for (std::uint32_t i = 0; i < n;) {
      const std::uint32_t from = i;
      for (const std::uint32_t to = std::min(i + pace_.group, n); i < to; ++i) {
        core::parse_frame_inline(packets[i].data, packets[i].contiguous, packets[i].total,
                                 parsed_[i]);
        if constexpr (kUpTo != UpTo::kParse) {
          pointers_[i] = &core::key_of<F>(parsed_[i]);
          hashes_[i] = hash(*pointers_[i]);
        }
      }
      if (kUpTo != UpTo::kParse && in_groups()) {
        for (std::uint32_t k = from; k < i; ++k) {
          store_.table.ask_ahead(hashes_[k]);
        }
      }
    }
    if constexpr (kUpTo <= UpTo::kHash) {
      return n;
    }
    const std::uint32_t ahead = kUpTo == UpTo::kLookup ? pipeline::kBurst : ahead_;
    const std::uint64_t found =
        store_.table.find_likely(pointers_.data(), hashes_.data(), n, hits_.data(),
                                 {.group = pace_.group, .entries = ahead});
    if constexpr (kUpTo == UpTo::kLookup) {
      return static_cast<std::uint32_t>(std::popcount(found));
    }
    std::uint32_t done = 0;
    for (std::uint64_t left = found; left != 0; left &= left - 1) {
      const auto i = static_cast<std::size_t>(std::countr_zero(left));
      if (i + ahead < n && (found >> (i + ahead) & 1) != 0) {
        store_.table.prefetch(hits_[i + ahead].entry());
      }
      // Of 65,536 keys one begins like another of its bucket.
      if (!store_.table.confirm(*pointers_[i], hashes_[i], hits_[i])) {
        continue;
      }
      ++done;
      const auto index = hits_[i].entry();
      store_.table.on_packet(index, hits_[i].direction(), parsed_[i].tcp_flags, kNow);
      if constexpr (kUpTo == UpTo::kRewrite) {
        core::translate(packets[i].data, parsed_[i],
                        pipeline::translation_of<F>(store_.table.entry(index),
                                                    hits_[i].direction()));
      }
    }
    return done;
  }

 private:
  static constexpr std::uint64_t kNowNs = 1'000'000'000;
  static constexpr core::Tick kNow = core::tick_of_ns(kNowNs) + 1;
  struct NoRelease {
    template <class Hot>
    void released(core::EntryIndex, const Hot&, const core::ColdEntry&,
                  core::ReleaseReason) noexcept {}
  };

  [[nodiscard]] bool in_groups() const noexcept { return pace_.group < pipeline::kBurst; }
  [[nodiscard, gnu::always_inline]] std::uint32_t hash(const Key& key) const noexcept {
    return in_groups() ? store_.table.hash(key) : store_.table.hash_ahead(key);
  }

  explicit CoreLoop(dpdk::ConnStore<F> store) noexcept : store_(std::move(store)) {}

  pipeline::MemoryPace pace_ = dpdk::memory_pace(dpdk::this_core());
  std::uint32_t ahead_ = pipeline::entries_ahead<F>(pace_.lines_ahead);
  dpdk::ConnStore<F> store_;
  NoRelease no_release_;
  std::array<core::ParsedFrame, pipeline::kBurst> parsed_;
  std::array<const Key*, pipeline::kBurst> pointers_{};
  std::array<std::uint32_t, pipeline::kBurst> hashes_{};
  std::array<core::KeyData, pipeline::kBurst> hits_{};
};

}  // namespace sluice::bench
