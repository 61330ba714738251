#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "dataplane/core/fwd/forwarding_table.h"

namespace sluice::pipeline {

/// Connections per worker and endpoint (design section 5, "State that spans workers").
/// Thread: opened() and closed() by that worker only (plain load and store); the rest by any.
/// Limit: an id of `endpoints` or more is not counted (the id registry must keep below it).
class ConnectionCounts {
 public:
  ConnectionCounts(std::size_t workers, std::size_t endpoints) : endpoints_(endpoints) {
    for (std::size_t w = 0; w < workers; ++w) {
      cells_.push_back(std::make_unique<Cell[]>(endpoints));
    }
  }

  void opened(std::size_t worker, core::EndpointId id) noexcept {
    if (Cell* cell = at(worker, id); cell != nullptr) {
      step(cell->active, 1);
      step(cell->total, 1);
    }
  }
  void closed(std::size_t worker, core::EndpointId id) noexcept {
    if (Cell* cell = at(worker, id); cell != nullptr) {
      step(cell->active, static_cast<std::uint64_t>(-1));
    }
  }

  /// Connections now, over all workers.
  [[nodiscard]] std::uint64_t active(core::EndpointId id) const noexcept {
    std::uint64_t sum = 0;
    for (std::size_t w = 0; w < cells_.size(); ++w) {
      const Cell* cell = at(w, id);
      sum += cell == nullptr ? 0 : cell->active.load(std::memory_order_acquire);
    }
    return sum;
  }
  /// Connections since start, over all workers. An id that is used again goes on counting.
  [[nodiscard]] std::uint64_t total(core::EndpointId id) const noexcept {
    std::uint64_t sum = 0;
    for (std::size_t w = 0; w < cells_.size(); ++w) {
      const Cell* cell = at(w, id);
      sum += cell == nullptr ? 0 : cell->total.load(std::memory_order_relaxed);
    }
    return sum;
  }
  [[nodiscard]] std::size_t endpoints() const noexcept { return endpoints_; }

 private:
  struct Cell {
    std::atomic<std::uint64_t> active{0};
    std::atomic<std::uint64_t> total{0};
  };
  static void step(std::atomic<std::uint64_t>& value, std::uint64_t by) noexcept {
    value.store(value.load(std::memory_order_relaxed) + by, std::memory_order_release);
  }
  [[nodiscard]] Cell* at(std::size_t worker, core::EndpointId id) const noexcept {
    const auto i = static_cast<std::size_t>(id);
    return i < endpoints_ ? &cells_[worker][i] : nullptr;
  }
  std::size_t endpoints_;
  std::vector<std::unique_ptr<Cell[]>> cells_;
};

}  // namespace sluice::pipeline
