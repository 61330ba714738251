#pragma once

#include "conf/config.h"
#include "control/compile/compile.h"
#include "kni/conntrack/sysctl_plan.h"

namespace sluice::daemon {

// From the configuration file's values to what each part takes. No decisions, no defaults but the
// ones a part needs to be told. What the workers take is in dpdk_settings.h.

[[nodiscard]] compile::NodeConfig node_config(const conf::Config& config);

[[nodiscard]] kni::ConntrackSettings conntrack_settings(const conf::ConntrackConfig& config);

}  // namespace sluice::daemon
