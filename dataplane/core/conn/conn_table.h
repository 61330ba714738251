#pragma once

// CONTRACT between core/conn and pipeline; the bodies are core/conn's. Changes are agreed by
// landing them early.

#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/core/conn/entry.h"
#include "dataplane/core/conn/key_index.h"

namespace sluice::core {

template <class F>
struct HotEntryOf;
template <>
struct HotEntryOf<Ipv4> {
  using type = HotEntry4;
};
template <>
struct HotEntryOf<Ipv6> {
  using type = HotEntry6;
};

/// Time-outs by state, in ticks. Defaults near IPVS (design section 5); from the configuration.
struct ConnTimeouts;

enum class CreateResult : std::uint8_t {
  kCreated,
  kFull,        ///< no victim: only established flows are left
  kReplyClash,  ///< the reply key is held by a live flow
  kExists,      ///< the forward key is already there
};

}  // namespace sluice::core
