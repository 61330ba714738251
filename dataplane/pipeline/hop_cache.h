#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "dataplane/core/net/address.h"
#include "dataplane/core/net/headers.h"
#include "dataplane/pipeline/next_hop_directory.h"

namespace sluice::pipeline {

/// Where backends are reached under the present tables, so that a new flow asks the routes and the
/// directory only for a backend that had none lately. One place each of 256: the last one stays.
/// Only what the directory knows is kept, and clear() comes with every view: so an index is never
/// used longer than an entry would.
/// Thread: the worker's.
class HopCache {
 public:
  [[nodiscard]] const ResolvedHop* find(const core::IpAddress& to) const noexcept {
    const Cell& cell = cells_[place_of(to)];
    return cell.view == view_ && cell.to == to ? &cell.hop : nullptr;
  }
  void keep(const core::IpAddress& to, const ResolvedHop& hop) noexcept {
    if (hop.index != core::NextHopIndex::kNone) {
      cells_[place_of(to)] = {view_, to, hop};
    }
  }
  void clear() noexcept { ++view_; }

 private:
  static constexpr std::size_t kCells = 256;
  struct Cell {
    std::uint64_t view = 0;  ///< older: empty
    core::IpAddress to;
    ResolvedHop hop;
  };
  [[nodiscard]] static std::size_t place_of(const core::IpAddress& to) noexcept {
    const std::uint64_t word = core::load_raw64(to.data()) ^ core::load_raw64(to.data() + 8);
    return static_cast<std::size_t>(word * 0x9e3779b97f4a7c15ULL >> 56);
  }
  std::array<Cell, kCells> cells_{};
  std::uint64_t view_ = 1;
};

}  // namespace sluice::pipeline
