#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <vector>

#include "dataplane/core/fwd/forwarding_table.h"
#include "dataplane/pipeline/connection_counts.h"

namespace sluice::pipeline {

/// Tells the workers of each other's connections (core/sched/load.h), for the endpoints of Services
/// whose scheduler asks. Where none does, share() has nothing to do.
/// Thread: the publisher's only (callers serialise).
class LoadSharing {
 public:
  /// How often to call share().
  static constexpr std::chrono::milliseconds kPeriod{2};

  /// @param counts  borrowed; outlives this.
  explicit LoadSharing(ConnectionCounts& counts) noexcept : counts_(counts) {}

  /// To be called with every table that is published; never null. Cost: the pages that changed.
  void see(core::TablePtr table);
  void share() noexcept { counts_.share(ids_); }
  /// Nobody asks for counts.
  [[nodiscard]] bool idle() const noexcept { return ids_.empty(); }

 private:
  ConnectionCounts& counts_;
  core::TablePtr table_;
  std::map<std::uint32_t, std::vector<core::EndpointId>> by_slot_;
  std::vector<core::EndpointId> ids_;  ///< of all slots
};

}  // namespace sluice::pipeline
