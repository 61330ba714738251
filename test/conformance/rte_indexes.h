#pragma once

#include "test/support/any_index.h"

namespace sluice::conformance {

/// The index the product has: rte_hash, in ordinary memory. The first call starts the EAL.
/// @return nullptr: built without DPDK; then the workers look up in a standard map.
/// Throws std::runtime_error when the EAL does not start. Thread: main.
[[nodiscard]] test::IndexMaker* rte_indexes();

}  // namespace sluice::conformance
