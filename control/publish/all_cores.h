#pragma once

#include <cstddef>
#include <functional>

namespace sluice::publish {

/// core::ParallelFor on the cores the calling thread may use, four at most; the caller takes part.
/// Starts threads that end with the call, so small n are better done by the caller alone. Thread:
/// any.
void on_all_cores(std::size_t n, const std::function<void(std::size_t)>& body);

}  // namespace sluice::publish
