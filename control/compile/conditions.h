#pragma once

#include "control/model/model.h"

namespace sluice::compile {

/// Conditions with the defaults applied.
struct Conditions {
  bool ready = true;
  bool serving = true;
  bool terminating = false;
  /// C-3: used only when there is no ready one.
  [[nodiscard]] bool fallback() const { return !ready && serving && terminating; }
};

[[nodiscard]] Conditions conditions_of(const model::SliceEndpoint& endpoint);

}  // namespace sluice::compile
