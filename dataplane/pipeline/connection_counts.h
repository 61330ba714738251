#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "dataplane/core/fwd/forwarding_table.h"
#include "dataplane/core/sched/load.h"
#include "dataplane/pipeline/exhaustion.h"

namespace sluice::pipeline {

/// Connections per worker and endpoint (design section 5, "State that spans workers").
/// Thread: opened(), moved() and closed() by that worker only (plain load and store); share() by
/// one publisher; the rest by any.
/// Limit: an id of `endpoints` or more is not counted (the id registry must keep below it).
class ConnectionCounts {
 public:
  ConnectionCounts(std::size_t workers, std::size_t endpoints)
      : endpoints_(endpoints), exhaustion_(workers) {
    for (std::size_t w = 0; w < workers; ++w) {
      workers_.push_back({std::make_unique<core::LoadCell[]>(endpoints),
                          std::make_unique<std::atomic<std::uint64_t>[]>(endpoints)});
    }
  }

  void opened(std::size_t worker, core::EndpointId id) noexcept {
    if (core::LoadCell* cell = at(worker, id); cell != nullptr) {
      step(cell->own_active, 1u);
      step(workers_[worker].totals[static_cast<std::size_t>(id)], std::uint64_t{1});
    }
  }
  /// A connection began to close, or is open again. What it is now is counted before what it was is
  /// not, so that active() never misses it.
  void moved(std::size_t worker, core::EndpointId id, bool closing) noexcept {
    if (core::LoadCell* cell = at(worker, id); cell != nullptr) {
      step(closing ? cell->own_closing : cell->own_active, 1u);
      step(closing ? cell->own_active : cell->own_closing, ~0u);
    }
  }
  /// @param closing  as it was counted.
  void closed(std::size_t worker, core::EndpointId id, bool closing) noexcept {
    if (core::LoadCell* cell = at(worker, id); cell != nullptr) {
      step(closing ? cell->own_closing : cell->own_active, ~0u);
    }
  }

  /// A new flow of a Service was refused: `address` had no source port.
  /// @param tag  tag_of() the Service
  void exhausted(std::size_t worker, core::ServiceSlot slot, std::uint32_t tag,
                 const core::IpAddress& address) noexcept {
    exhaustion_.add(worker, slot, tag, address);
  }
  [[nodiscard]] std::vector<SourceExhaustion> exhaustion() const { return exhaustion_.read(); }

  /// Connections now, closing ones too, over all workers.
  [[nodiscard]] std::uint64_t active(core::EndpointId id) const noexcept {
    std::uint64_t sum = 0;
    for (std::size_t w = 0; w < workers_.size(); ++w) {
      if (const core::LoadCell* cell = at(w, id); cell != nullptr) {
        const std::uint32_t before = cell->own_active.load(std::memory_order_acquire);
        const std::uint32_t closing = cell->own_closing.load(std::memory_order_acquire);
        // The second look sees one that was moved back to the open ones between the two others.
        const std::uint32_t after = cell->own_active.load(std::memory_order_acquire);
        sum += std::uint64_t{before > after ? before : after} + closing;
      }
    }
    return sum;
  }
  /// Connections since start, over all workers. An id that is used again goes on counting.
  [[nodiscard]] std::uint64_t total(core::EndpointId id) const noexcept {
    std::uint64_t sum = 0;
    const auto i = static_cast<std::size_t>(id);
    for (std::size_t w = 0; w < workers_.size() && i < endpoints_; ++w) {
      sum += workers_[w].totals[i].load(std::memory_order_relaxed);
    }
    return sum;
  }

  /// What worker `worker` sees of the load.
  [[nodiscard]] core::LoadView view(std::size_t worker) const noexcept {
    return {{workers_[worker].cells.get(), endpoints_},
            static_cast<std::uint32_t>(workers_.size())};
  }
  /// Sums the counts of `ids` over the workers for every worker's view.
  void share(std::span<const core::EndpointId> ids) noexcept {
    for (const core::EndpointId id : ids) {
      if (static_cast<std::size_t>(id) < endpoints_) {
        share_one(id, &core::LoadCell::own_active, &core::LoadCell::others_active);
        share_one(id, &core::LoadCell::own_closing, &core::LoadCell::others_closing);
      }
    }
  }

  [[nodiscard]] std::size_t endpoints() const noexcept { return endpoints_; }

 private:
  struct PerWorker {
    std::unique_ptr<core::LoadCell[]> cells;
    std::unique_ptr<std::atomic<std::uint64_t>[]> totals;
  };
  template <class T>
  static void step(std::atomic<T>& value, T by) noexcept {
    value.store(value.load(std::memory_order_relaxed) + by, std::memory_order_release);
  }
  [[nodiscard]] core::LoadCell* at(std::size_t worker, core::EndpointId id) const noexcept {
    const auto i = static_cast<std::size_t>(id);
    return i < endpoints_ ? &workers_[worker].cells[i] : nullptr;
  }

  /// others = total - workers * base, the base being what was counted into this very total. A count
  /// that moves meanwhile is in both or in neither, as it is read once.
  void share_one(core::EndpointId id, std::atomic<std::uint32_t> core::LoadCell::*own,
                 std::atomic<std::int32_t> core::LoadCell::*others) noexcept {
    constexpr std::int64_t kMin = std::numeric_limits<std::int32_t>::min();
    constexpr std::int64_t kMax = std::numeric_limits<std::int32_t>::max();
    constexpr std::size_t kAtOnce = 128;  // kMaxWorkers
    const std::size_t n = workers_.size() < kAtOnce ? workers_.size() : kAtOnce;
    std::uint32_t base[kAtOnce];
    std::int64_t total = 0;
    for (std::size_t w = 0; w < n; ++w) {
      base[w] = (at(w, id)->*own).load(std::memory_order_relaxed);
      total += base[w];
    }
    for (std::size_t w = 0; w < n; ++w) {
      const std::int64_t wanted = total - static_cast<std::int64_t>(n) * base[w];
      const auto value = static_cast<std::int32_t>(wanted < kMin   ? kMin
                                                   : wanted > kMax ? kMax
                                                                   : wanted);
      auto& cell = at(w, id)->*others;
      if (cell.load(std::memory_order_relaxed) != value) {
        cell.store(value, std::memory_order_relaxed);
      }
    }
  }

  std::size_t endpoints_;
  std::vector<PerWorker> workers_;
  ExhaustionCounts exhaustion_;
};

}  // namespace sluice::pipeline
