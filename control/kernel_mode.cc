// The kernel modes: adapter, conntrack, the host's addresses, publisher, health, server.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <spdlog/spdlog.h>

#include "control/daemon_parts.h"
#include "control/health_side.h"
#include "control/metrics_side.h"
#include "control/settings.h"
#include "kni/conntrack/sysctls.h"
#include "kni/exception/mirror.h"

namespace sluice::daemon {
namespace {

compile::HostState host_state(const std::vector<kni::HostAddress>& addresses) {
  compile::HostState state;
  for (const kni::HostAddress& address : addresses) {
    state.addresses.push_back({address.address, address.interface});
  }
  return state;
}

}  // namespace

core::Result<void> serve_kernel(const conf::Config& config, TakeOver take_over,
                                const MustEnd& must_end) {
  auto claim = claim_listen(config.listen);
  if (!claim) {
    return tl::make_unexpected(claim.error());
  }
  auto kernel =
      KernelSink::open(config.mode, {config.sync_period, take_over, config.iptables, ""});
  if (!kernel) {
    return tl::make_unexpected(kernel.error());
  }
  if (auto done = kni::apply_conntrack_sysctls(conntrack_settings(config.conntrack)); !done) {
    return done;
  }
  publish::Publisher publisher(publisher_options(config), {kernel_slot(config, kernel->sink())},
                               nullptr);
  const PublisherStop stop_publisher{publisher};
  kni::MirrorEvents events;
  events.addresses = [&](const auto& addresses) {
    publisher.set_host_state(host_state(addresses));
  };
  events.routes = [](const auto&) {};
  events.neighbour = [](const auto&) {};
  events.wishes = [](auto&) {};
  events.warn = warn_line;
  kni::Mirror mirror({}, std::move(events));
  if (auto started = mirror.start(); !started) {
    return started;
  }
  auto health = HealthSide::start(config, publisher, warn_line);
  if (!health) {
    return tl::make_unexpected(health.error());
  }
  auto metrics = MetricsSide::start(config, publisher, **health, kernel->metrics(), warn_line);
  if (!metrics) {
    return tl::make_unexpected(metrics.error());
  }
  publisher.start();
  claim->reset();
  server::Server server(server_options(config), publisher, nullptr);
  if (auto listening = server.start(); !listening) {
    return listening;
  }
  spdlog::info("sluiced {}: mode {}, serving on {}", kVersion, conf::name_of(config.mode),
               server.address());

  core::Result<void> ended = wait_for_end(publisher, must_end);
  server.stop();
  metrics->reset();
  health->reset();
  mirror.stop();
  return ended;
}

}  // namespace sluice::daemon
