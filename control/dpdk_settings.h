#pragma once

#include "conf/config.h"
#include "dataplane/dpdk/worker_group.h"
#include "kni/exception/interface_setup.h"

namespace sluice::daemon {

// From the configuration file's values to what workers and taps take. No decisions, no defaults but
// the ones a part needs to be told.

/// @param log  where DPDK's own lines go. The guard is set by the caller.
[[nodiscard]] dpdk::GroupSettings group_settings(const conf::Config& config, dpdk::LogSink log);

[[nodiscard]] kni::InterfaceSetup interface_setup(const conf::PortConfig& port);

/// First and last port of source translation.
struct PortRange {
  std::uint16_t first = 0;
  std::uint16_t last = 0;
};
[[nodiscard]] PortRange snat_ports(const conf::SnatConfig& snat);

}  // namespace sluice::daemon
