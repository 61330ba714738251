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
  std::uint32_t service_tag = 0;  ///< tag_of() the Service that had the slot
  core::IpAddress address;        ///< of the pool, or the node's
  std::uint64_t flows = 0;        ///< since start, or since the Service got its slot
};

/// Tells the Services apart that have a slot one after the other (FNV-1a).
[[nodiscard]] inline std::uint32_t tag_of(const core::ServicePort& service) noexcept {
  std::uint32_t tag = 2166136261u;
  for (const char c : service.name) {
    tag = (tag ^ static_cast<unsigned char>(c)) * 16777619u;
  }
  return tag;
}

/// How often that happened, by service slot and address. A row per worker; each row holds 128 pairs,
/// what comes later is counted by the plain counter alone (conn_snat_exhausted). A slot that another
/// Service gets starts from 0.
/// Thread: add() by that worker only; read() by any. A cell's slot and address are written once,
/// before its count is stored with release. Its tag may change: the count is 0 before it does, and a
/// reader that sees another tag after the count than before it leaves the cell out.
class ExhaustionCounts {
 public:
  explicit ExhaustionCounts(std::size_t workers) : rows_(workers) {
    for (auto& row : rows_) {
      row = std::make_unique<Row>();
    }
  }

  void add(std::size_t worker, core::ServiceSlot service, std::uint32_t tag,
           const core::IpAddress& address) noexcept {
    for (Cell& cell : *rows_[worker]) {
      if (!cell.taken.load(std::memory_order_relaxed)) {
        cell.service = service;
        cell.address = address;
        cell.tag.store(tag, std::memory_order_relaxed);
        cell.taken.store(true, std::memory_order_release);
      } else if (cell.service != service || cell.address != address) {
        continue;
      } else if (cell.tag.load(std::memory_order_relaxed) != tag) {
        cell.flows.store(0, std::memory_order_seq_cst);
        cell.tag.store(tag, std::memory_order_seq_cst);
      }
      cell.flows.store(cell.flows.load(std::memory_order_relaxed) + 1, std::memory_order_seq_cst);
      return;
    }
  }

  /// Sums over the workers, in no order.
  [[nodiscard]] std::vector<SourceExhaustion> read() const {
    std::vector<SourceExhaustion> all;
    for (const auto& row : rows_) {
      for (const Cell& cell : *row) {
        if (!cell.taken.load(std::memory_order_acquire)) {
          continue;
        }
        const std::uint32_t tag = cell.tag.load(std::memory_order_seq_cst);
        const std::uint64_t flows = cell.flows.load(std::memory_order_seq_cst);
        if (flows != 0 && cell.tag.load(std::memory_order_seq_cst) == tag) {
          merge(all, {cell.service, tag, cell.address, flows});
        }
      }
    }
    return all;
  }

 private:
  struct Cell {
    std::atomic<bool> taken{false};
    std::atomic<std::uint32_t> tag{0};
    std::atomic<std::uint64_t> flows{0};
    core::ServiceSlot service = core::ServiceSlot::kNone;
    core::IpAddress address;
  };
  using Row = std::array<Cell, 128>;
  static void merge(std::vector<SourceExhaustion>& all, const SourceExhaustion& one) {
    for (SourceExhaustion& known : all) {
      if (known.service == one.service && known.service_tag == one.service_tag &&
          known.address == one.address) {
        known.flows += one.flows;
        return;
      }
    }
    all.push_back(one);
  }
  std::vector<std::unique_ptr<Row>> rows_;
};

}  // namespace sluice::pipeline
