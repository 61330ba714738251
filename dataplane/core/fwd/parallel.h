#pragma once

#include <cstddef>
#include <functional>

namespace sluice::core {

/// Calls body(0) .. body(n - 1), in any order and on any threads, and returns when all have ended.
/// Throws what one of them threw. Core, model and compile start no threads: who owns them says how.
using ParallelFor =
    std::function<void(std::size_t n, const std::function<void(std::size_t)>& body)>;

/// On the caller's thread, in order.
inline void one_after_another(std::size_t n, const std::function<void(std::size_t)>& body) {
  for (std::size_t i = 0; i < n; ++i) {
    body(i);
  }
}

}  // namespace sluice::core
