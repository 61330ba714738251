#pragma once

#include <string>
#include <vector>

#include "dataplane/core/sink.h"
#include "test/conformance/case.h"

namespace sluice::conformance {

/// Reads one case file, or every *.yaml of a directory in the order of their names.
/// Errors: a path that cannot be read, or a file with its line that is not a case file.
[[nodiscard]] core::Result<std::vector<Case>> read_cases(const std::string& path);

}  // namespace sluice::conformance
