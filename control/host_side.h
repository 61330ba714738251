#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "conf/config.h"
#include "control/compile/compile.h"
#include "control/tap_keeper.h"
#include "dataplane/dpdk/worker_group.h"
#include "kni/exception/announce_routes.h"
#include "kni/exception/mirror.h"
#include "kni/exception/reserved_ports.h"

namespace sluice::daemon {

/// Joins the host's network stack and the workers: taps get their addresses and routes, what the
/// kernel says goes to workers and publisher, what workers ask for goes to the kernel. Taps that go
/// or were down are mended.
/// Thread: main; callbacks run on the mirror's thread.
class HostSide {
 public:
  struct Calls {
    std::function<void(compile::HostState)> host_state;
    std::function<void(const std::string&)> warn;
  };

  /// Sets up taps, rules and reserved ports, reads the host's state and reports it, follows it.
  /// @param group  borrowed; outlives the object.
  [[nodiscard]] static core::Result<std::unique_ptr<HostSide>> start(const conf::Config& config,
                                                                     dpdk::WorkerGroup& group,
                                                                     Calls calls);
  ~HostSide();
  HostSide(const HostSide&) = delete;
  HostSide& operator=(const HostSide&) = delete;

  /// Ends the mirror. Taps, rules and reserved ports go with the object.
  void stop();

 private:
  HostSide(dpdk::WorkerGroup& group, Calls calls) : group_(group), calls_(std::move(calls)) {}
  core::Result<void> set_up(const conf::Config& config);
  core::Result<void> follow();
  [[nodiscard]] std::unique_ptr<TapKeeper> make_keeper(const conf::Config& config);
  void take_addresses(const std::vector<kni::HostAddress>& addresses);
  void take_routes(const std::vector<kni::HostRoute>& routes);
  void take_neighbour(const kni::HostNeighbour& neighbour);
  void take_table(const core::ForwardingTable& table);

  dpdk::WorkerGroup& group_;
  Calls calls_;
  std::optional<kni::ReservedPorts> reserved_;
  std::unique_ptr<kni::AnnounceRoutes> announce_routes_;
  std::unique_ptr<TapKeeper> keeper_;
  std::unique_ptr<kni::Mirror> mirror_;
};

}  // namespace sluice::daemon
