#pragma once

#include <string>

#include "conf/config.h"

namespace sluice::daemon {

/// What /configz says (AD-1): the configuration in kube-proxy's words, as far as it has words for
/// it, as JSON.
[[nodiscard]] std::string configz(const conf::Config& config);

}  // namespace sluice::daemon
