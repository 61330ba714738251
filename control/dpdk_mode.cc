// Mode dpdk: workers, taps, publisher, health, server.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <spdlog/spdlog.h>

#include "control/daemon_parts.h"
#include "control/dpdk_settings.h"
#include "control/health_side.h"
#include "control/host_side.h"
#include "control/metrics_side.h"
#include "dataplane/dpdk/tap.h"
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

/// Kernel rules for what begins on the host (host-mode); nothing: no host-mode.
core::Result<std::optional<KernelSink>> open_host_rules(const conf::Config& config,
                                                        TakeOver take_over) {
  if (!config.host_mode) {
    if (take_over != TakeOver::kNothing) {
      return tl::make_unexpected(
          core::Error{"--take-over: a kernel mode is expected, as mode or as host-mode"});
    }
    return std::nullopt;
  }
  auto kernel = KernelSink::open(
      *config.host_mode, {config.sync_period, take_over, config.iptables, dpdk::tap_name("")});
  if (!kernel) {
    return tl::make_unexpected(kernel.error());
  }
  return std::optional(std::move(*kernel));
}

std::vector<const core::MetricSource*> metrics_of(const std::optional<KernelSink>& host) {
  return host ? host->metrics() : std::vector<const core::MetricSource*>{};
}

std::vector<publish::SinkSlot> sink_slots(const conf::Config& config, core::TableSink& workers,
                                          std::optional<KernelSink>& host) {
  std::vector<publish::SinkSlot> slots = {{.sink = &workers, .sync_period = config.sync_period}};
  if (host) {
    slots.push_back(kernel_slot(config, host->sink()));
  }
  return slots;
}

}  // namespace

core::Result<void> serve_dpdk(const conf::Config& config, TakeOver take_over,
                              const MustEnd& must_end) {
  if (const std::string missing = kni::missing_privilege(); !missing.empty()) {
    return tl::make_unexpected(core::Error{missing});
  }
  auto claim = claim_listen(config.listen);
  if (!claim) {
    return tl::make_unexpected(claim.error());
  }
  // Before the group, which takes the interfaces: it may wait for a restore of an earlier daemon.
  auto host_rules = open_host_rules(config, take_over);
  if (!host_rules) {
    return tl::make_unexpected(host_rules.error());
  }
  auto group = make_group(config);
  if (!group) {
    return tl::make_unexpected(group.error());
  }
  publish::Publisher publisher(publisher_options(config),
                               sink_slots(config, **group, *host_rules), group->get());
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
  auto metrics =
      MetricsSide::start(config, publisher, **health, metrics_of(*host_rules), warn_line);
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
    return (*group)->healthy() ? must_end() : "a worker ended by itself";
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
