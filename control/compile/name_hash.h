#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "control/model/model.h"

namespace sluice::compile {

/// Mixes `value` into `seed` (boost::hash_combine's 64-bit form: a multiply by an odd constant and
/// a shift per part).
[[nodiscard]] inline std::size_t combine_hashes(std::size_t seed, std::size_t value) noexcept {
  seed ^= value + 0x9e3779b97f4a7c15ULL + (seed << 12) + (seed >> 4);
  return seed * 0xff51afd7ed558ccdULL;
}

/// For maps whose order does not matter: a look-up in a large one reads two cache lines, not twenty.
struct NameHash {
  std::size_t operator()(const model::ObjectName& name) const noexcept {
    const std::hash<std::string> text;
    return combine_hashes(text(name.ns), text(name.name));
  }
};

}  // namespace sluice::compile
