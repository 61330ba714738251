#pragma once

#include <memory>

#include "test/conformance/subject.h"

namespace sluice::conformance {

/// The pure core: compile() and decide(), no packets.
[[nodiscard]] std::unique_ptr<Subject> make_core_subject();

}  // namespace sluice::conformance
