#pragma once

#include <memory>

#include "test/conformance/subject.h"

namespace sluice::conformance {

/// The nftables adapter in the kernel, with real sockets in network namespaces.
[[nodiscard]] std::unique_ptr<Subject> make_nftables_subject();

}  // namespace sluice::conformance
