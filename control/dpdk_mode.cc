// Mode dpdk: workers, taps, publisher, health, server.

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <spdlog/spdlog.h>

#include "control/daemon_parts.h"
#include "control/dpdk_settings.h"
#include "control/health_side.h"
#include "control/host_side.h"
#include "control/metrics_side.h"
#include "dataplane/dpdk/worker_group.h"
#include "kni/exception/guard.h"
#include "kni/exception/interface_setup.h"

namespace sluice::daemon {
namespace {

void log_line(dpdk::Severity severity, std::string_view line) {
  switch (severity) {
    case dpdk::Severity::kDebug:
      spdlog::debug("{}", line);
      return;
    case dpdk::Severity::kInfo:
      spdlog::info("{}", line);
      return;
    case dpdk::Severity::kWarning:
      spdlog::warn("{}", line);
      return;
    case dpdk::Severity::kError:
      spdlog::error("{}", line);
      return;
  }
}

core::Result<std::unique_ptr<dpdk::WorkerGroup>> make_group(const conf::Config& config) {
  dpdk::GroupSettings settings = group_settings(config, log_line);
  settings.guard = [](const std::string& interface,
                      bool drop_frames) -> core::Result<std::shared_ptr<void>> {
    auto guard = kni::InterfaceGuard::hold(interface, drop_frames);
    if (!guard) {
      return tl::make_unexpected(guard.error());
    }
    return std::shared_ptr<void>(std::shared_ptr<kni::InterfaceGuard>(std::move(*guard)));
  };
  return dpdk::WorkerGroup::create(std::move(settings));
}

}  // namespace

core::Result<void> serve_dpdk(const conf::Config& config, TakeOver) {
  if (const std::string missing = kni::missing_privilege(); !missing.empty()) {
    return tl::make_unexpected(core::Error{missing});
  }
  auto claim = claim_listen(config.listen);
  if (!claim) {
    return tl::make_unexpected(claim.error());
  }
  auto group = make_group(config);
  if (!group) {
    return tl::make_unexpected(group.error());
  }
  publish::Publisher publisher(publisher_options(config),
                               {{.sink = group->get(), .sync_period = config.sync_period}},
                               group->get());
  auto host = HostSide::start(
      config, **group,
      {[&](compile::HostState state) { publisher.set_host_state(std::move(state)); }, warn_line});
  if (!host) {
    return tl::make_unexpected(host.error());
  }
  const PublisherStop stop_publisher{publisher};
  publisher.start();
  if (auto started = (*group)->start(); !started) {
    return started;
  }
  // After the workers: one that is about to run must not read as one that does not.
  auto health = HealthSide::start(config, publisher, warn_line);
  if (!health) {
    return tl::make_unexpected(health.error());
  }
  auto metrics = MetricsSide::start(config, publisher, **health, {}, warn_line);
  if (!metrics) {
    return tl::make_unexpected(metrics.error());
  }
  claim->reset();
  server::Server server(server_options(config), publisher, group->get());
  if (auto listening = server.start(); !listening) {
    return listening;
  }
  for (const std::string& line : (*group)->description()) {
    spdlog::info("{}", line);
  }
  spdlog::info("sluiced {}: serving on {}", kVersion, server.address());

  const core::Result<void> ended = wait_for_end(publisher, [&] {
    return std::string((*group)->healthy() ? "" : "a worker ended by itself");
  });
  server.stop();
  metrics->reset();
  health->reset();
  publisher.stop();
  (*host)->stop();
  const core::Result<void> stopped = (*group)->stop();
  return ended ? stopped : ended;
}

}  // namespace sluice::daemon
