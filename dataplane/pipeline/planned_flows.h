#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "dataplane/core/conn/conn_table.h"
#include "dataplane/core/fwd/decide.h"

namespace sluice::pipeline {

/// Why no candidate took a flow, beside a reply key that is held.
enum class Obstacle : std::uint8_t { kNone, kNoSourcePort, kOutOfReach };

/// New flows of a burst whose endpoint is chosen and whose entry is still to be made. What making it
/// reads first, the buckets of the reply key, comes while others are decided; one after the other,
/// each would be waited for. Thread: the worker's.
template <class F>
struct PlannedFlows {
  static constexpr std::uint32_t kMax = 16;
  struct Flow {
    std::uint32_t place;           ///< of its packet in the batch
    core::EndpointIndex first;     ///< candidate that was chosen
    core::Decision decision;       ///< of the tables of this batch
    core::NewConn<F> conn;
  };
  std::uint32_t size = 0;
  std::array<Flow, kMax> flows;
};

}  // namespace sluice::pipeline
