#pragma once

#include <functional>
#include <string>
#include <vector>

#include "dataplane/core/net/address.h"
#include "dataplane/core/sink.h"

namespace sluice::test {

/// Runs `body` on a thread of its own in a fresh network namespace whose loopback interface is up
/// and has `addresses` too. Threads that it starts live there as well; the namespace ends with the
/// last of them. Exceptions of `body` must not leave it.
/// Errors: no right to make one, or no `ip` command; `body` was not run then.
[[nodiscard]] core::Result<void> in_network_namespace(const std::vector<core::IpAddress>& addresses,
                                                      const std::function<void()>& body);

}  // namespace sluice::test
