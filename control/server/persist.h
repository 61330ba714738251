#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "control/model/model.h"
#include "dataplane/core/sink.h"

namespace sluice::server {

// The file: 8 bytes magic with the format number, then little-endian version (8), payload length
// (8) and checksum of the payload (8, XXH3), then the payload: Objects messages, each behind its
// length (4). Written to a neighbour, flushed, renamed: the file is always a whole one.

enum class Saved : std::uint8_t {
  kWhole,    ///< the file is this state
  kGivenUp,  ///< the file is as it was
};

/// Writes the state. Thread: any, one at a time for a path.
/// @param give_up  looked at between pages, may be null; when it is set the rest is not written.
core::Result<Saved> save_state(const std::string& path, const model::ClusterState& state,
                               const std::atomic<bool>* give_up = nullptr);

/// Reads a state back. nullopt: there is no file. Errors: damaged, of another format, unreadable;
/// the file is left alone. Objects that no longer pass validation are left out.
core::Result<std::optional<model::ClusterState>> load_state(const std::string& path);

}  // namespace sluice::server
