#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "dataplane/core/fwd/udp_reconcile.h"
#include "dataplane/core/sink.h"

namespace sluice::kni {

/// What one pass over the kernel's UDP flows came to.
struct SweepResult {
  std::uint64_t seen = 0;
  std::uint64_t removed_v4 = 0;
  std::uint64_t removed_v6 = 0;
  std::uint64_t failed = 0;  ///< could not be removed; not tried again (CT-5)
};

/// How full the kernel's table of flows is, and what it could not do since it was started.
struct ConntrackFill {
  std::uint64_t entries = 0;
  std::uint64_t max = 0;
  std::uint64_t insert_failed = 0;
  std::uint64_t drop = 0;        ///< packets, because the table was full
  std::uint64_t early_drop = 0;  ///< flows, to make room
};

/// The kernel's conntrack as the adapters need it. Thread: one.
class Conntrack {
 public:
  using Wanted = std::function<bool(const core::UdpFlow&)>;
  virtual ~Conntrack() = default;
  /// Removes the UDP flows of both families that are `wanted`. A listing that is interrupted is
  /// repeated a few times; what was listed is used all the same (CT-5).
  /// Errors: the flows cannot be listed.
  virtual core::Result<SweepResult> remove_udp(const Wanted& wanted) = 0;
};

/// By netlink, in the network namespace of the calling thread.
[[nodiscard]] core::Result<std::unique_ptr<Conntrack>> open_conntrack();

/// Errors: a kernel without conntrack, or one that does not show it.
[[nodiscard]] core::Result<ConntrackFill> read_conntrack_fill();

}  // namespace sluice::kni
