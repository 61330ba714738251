#pragma once

#include <string>
#include <vector>

#include "control/compile/explain.h"
#include "test/conformance/case.h"

namespace sluice::conformance {

/// Explains the flow of a probe and compares the explanation with what decide() said and with what
/// the case expects: verdict, endpoints, source translation of each, affinity. Also that there are
/// steps with rule ids, and that the reasons were known.
/// @return one line per difference.
[[nodiscard]] std::vector<std::string> check_explain(const compile::ExplainInput& input,
                                                     const core::Decision& decision,
                                                     const Probe& probe);

}  // namespace sluice::conformance
