#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "dataplane/core/fwd/forwarding_table.h"

namespace sluice::pipeline {

/// Flows that were refused because an address had no source port left to any endpoint of a Service.
struct SourceExhaustion {
  core::ServiceSlot service = core::ServiceSlot::kNone;
  core::IpAddress address;  ///< of the pool, or the node's
  std::uint64_t flows = 0;  ///< since start; a slot that another Service takes over goes on counting
};

/// How often that happened, by service slot and address. A row per worker; each row holds 128 pairs,
/// what comes later is counted by the plain counter alone (conn_snat_exhausted).
/// Thread: add() by that worker only; read() by any. A cell's name is written once, before its count
/// is stored with release.
class ExhaustionCounts {
 public:
  explicit ExhaustionCounts(std::size_t workers) : rows_(workers) {
    for (auto& row : rows_) {
      row = std::make_unique<Row>();
    }
  }

  void add(std::size_t worker, core::ServiceSlot service, const core::IpAddress& address) noexcept {
    for (Cell& cell : *rows_[worker]) {
      const std::uint64_t flows = cell.flows.load(std::memory_order_relaxed);
      if (flows == 0) {
        cell.service = service;
        cell.address = address;
      } else if (cell.service != service || cell.address != address) {
        continue;
      }
      cell.flows.store(flows + 1, std::memory_order_release);
      return;
    }
  }

  /// Sums over the workers, in no order.
  [[nodiscard]] std::vector<SourceExhaustion> read() const {
    std::vector<SourceExhaustion> all;
    for (const auto& row : rows_) {
      for (const Cell& cell : *row) {
        if (const std::uint64_t flows = cell.flows.load(std::memory_order_acquire); flows != 0) {
          merge(all, {cell.service, cell.address, flows});
        }
      }
    }
    return all;
  }

 private:
  struct Cell {
    std::atomic<std::uint64_t> flows{0};  ///< 0: nobody's
    core::ServiceSlot service = core::ServiceSlot::kNone;
    core::IpAddress address;
  };
  using Row = std::array<Cell, 128>;
  static void merge(std::vector<SourceExhaustion>& all, const SourceExhaustion& one) {
    for (SourceExhaustion& known : all) {
      if (known.service == one.service && known.address == one.address) {
        known.flows += one.flows;
        return;
      }
    }
    all.push_back(one);
  }
  std::vector<std::unique_ptr<Row>> rows_;
};

}  // namespace sluice::pipeline
