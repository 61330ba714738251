#pragma once

#include "dataplane/core/sink.h"
#include "kni/conntrack/sysctl_plan.h"

namespace sluice::kni {

/// Reads what the kernel has, plans (CT-7..CT-9) and writes, in the network namespace of the
/// calling thread. Errors: the first path that cannot be written; nothing behind it was.
/// @param root  in front of every path, for tests.
core::Result<void> apply_conntrack_sysctls(const ConntrackSettings& settings,
                                           const std::string& root = "");

}  // namespace sluice::kni
