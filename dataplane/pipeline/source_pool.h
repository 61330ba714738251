#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "dataplane/core/conn/snat_ports.h"

namespace sluice::pipeline {

/// Ports of source translation, split over the workers. Made by the publisher when the range
/// changes. Thread: owners() any; of_worker(w) is worker w's own and the only part that changes.
class SourcePool {
 public:
  /// No ports: source translation finds nothing.
  explicit SourcePool(std::size_t workers) : SourcePool(workers, core::PortOwners()) {}
  /// @param first,last  host order, inclusive; first <= last.
  SourcePool(std::size_t workers, std::uint16_t first, std::uint16_t last)
      : SourcePool(workers, core::PortOwners(first, last, static_cast<unsigned>(workers))) {}

  [[nodiscard]] const core::PortOwners& owners() const noexcept { return owners_; }
  [[nodiscard]] core::SnatPorts& of_worker(std::size_t worker) const noexcept {
    return *ports_[worker];
  }

 private:
  SourcePool(std::size_t workers, core::PortOwners owners) : owners_(std::move(owners)) {
    for (std::size_t w = 0; w < workers; ++w) {
      ports_.push_back(
          std::make_unique<core::SnatPorts>(owners_.ports_of(static_cast<unsigned>(w))));
    }
  }
  core::PortOwners owners_;
  std::vector<std::unique_ptr<core::SnatPorts>> ports_;
};

}  // namespace sluice::pipeline
