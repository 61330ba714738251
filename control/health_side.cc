#include "control/health_side.h"

namespace sluice::daemon {

core::Result<std::unique_ptr<HealthSide>> HealthSide::start(
    const conf::Config& config, const publish::Publisher& publisher,
    std::function<void(const std::string&)> warn) {
  auto address = http::parse_bind_address(config.healthz.address, http::kHealthzPort);
  if (!address) {
    return tl::unexpected(address.error());
  }
  http::HealthServer::Options options;
  options.tracker.sync_period = config.sync_period;
  options.healthz = *address;
  options.bind_hard_fail = config.healthz.bind_hard_fail;
  options.warn = std::move(warn);
  auto server = http::HealthServer::create(std::move(options));
  if (!server) {
    return tl::unexpected(core::Error{"healthz.address: " + server.error().message});
  }
  return std::unique_ptr<HealthSide>(new HealthSide(std::move(*server), publisher));
}

}  // namespace sluice::daemon
