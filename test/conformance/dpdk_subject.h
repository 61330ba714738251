#pragma once

#include <memory>

#include "test/conformance/subject.h"

namespace sluice::conformance {

/// Real frames through workers of the pipeline, judged by what comes out.
[[nodiscard]] std::unique_ptr<Subject> make_dpdk_subject();

}  // namespace sluice::conformance
