#pragma once

#include <memory>

#include "test/conformance/kernel_node.h"
#include "test/conformance/subject.h"

namespace sluice::conformance {

/// Runs an adapter in the kernel, in network namespaces, with real sockets.
[[nodiscard]] std::unique_ptr<Subject> make_kernel_subject(const KernelAdapter& adapter);

}  // namespace sluice::conformance
