// The kernel modes: adapter, conntrack, the host's addresses, publisher, health, server.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <spdlog/spdlog.h>

#include "control/daemon_parts.h"
#include "control/health_side.h"
#include "control/settings.h"
#include "kni/conntrack/conntrack_sink.h"
#include "kni/conntrack/sysctls.h"
#include "kni/exception/mirror.h"
#include "kni/nftables/nftables_sink.h"

namespace sluice::daemon {
namespace {

constexpr std::chrono::seconds kMinSyncPeriod{1};  // SY-5

core::Result<std::unique_ptr<kni::NftablesSink>> make_nftables(std::chrono::milliseconds period) {
  auto kernel = kni::nft::open_kernel();
  if (!kernel) {
    return tl::make_unexpected(kernel.error());
  }
  kni::NftablesSink::Options options;
  options.verify_within = period;
  options.warn = warn_line;
  return std::make_unique<kni::NftablesSink>(std::move(*kernel), std::move(options));
}

compile::HostState host_state(const std::vector<kni::HostAddress>& addresses) {
  compile::HostState state;
  for (const kni::HostAddress& address : addresses) {
    state.addresses.push_back({address.address, address.interface});
  }
  return state;
}

}  // namespace

core::Result<void> serve_kernel(const conf::Config& config) {
  auto claim = claim_listen(config.listen);
  if (!claim) {
    return tl::make_unexpected(claim.error());
  }
  auto nftables = make_nftables(config.sync_period);
  if (!nftables) {
    return tl::make_unexpected(nftables.error());
  }
  auto conntrack = kni::open_conntrack();
  if (!conntrack) {
    return tl::make_unexpected(conntrack.error());
  }
  if (auto done = kni::apply_conntrack_sysctls(conntrack_settings(config.conntrack)); !done) {
    return done;
  }
  kni::ConntrackSink sink(**nftables, std::move(*conntrack), warn_line);
  publish::Publisher publisher(publisher_options(config),
                               {{.sink = &sink,
                                 .min_sync_period = config.min_sync_period.value_or(kMinSyncPeriod),
                                 .sync_period = config.sync_period,
                                 .resync_period = config.sync_period}},
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
  publisher.start();
  claim->reset();
  server::Server server(server_options(config), publisher, nullptr);
  if (auto listening = server.start(); !listening) {
    return listening;
  }
  spdlog::info("sluiced {}: mode nftables, serving on {}", kVersion, server.address());

  core::Result<void> ended = wait_for_end(publisher, [] { return std::string(); });
  server.stop();
  health->reset();
  mirror.stop();
  return ended;
}

core::Result<void> clean_up_kernel() {
  auto nftables = make_nftables({});
  if (!nftables) {
    return tl::make_unexpected(nftables.error());
  }
  return (*nftables)->cleanup();
}

}  // namespace sluice::daemon
