#pragma once

// Stage: fragments. Included by worker.h.

#include "dataplane/pipeline/worker.h"

namespace sluice::pipeline {

template <PacketIo Io, class I4, class I6, WorkerClock C>
void Worker<Io, I4, I6, C>::serve_fragment(std::uint32_t i) noexcept {
  pass(i, Counter::kHostFragment);
}

}  // namespace sluice::pipeline
