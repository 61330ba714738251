#include "control/metrics_side.h"

#include "control/configz.h"

#include <utility>

namespace sluice::daemon {

core::Result<std::unique_ptr<MetricsSide>> MetricsSide::start(
    const conf::Config& config, const publish::Publisher& publisher, const HealthSide& health,
    std::vector<const core::MetricSource*> sources,
    std::function<void(const std::string&)> warn) {
  auto address = http::parse_bind_address(config.metrics.address, http::kMetricsPort);
  if (!address) {
    return tl::unexpected(address.error());
  }
  std::unique_ptr<MetricsSide> side(new MetricsSide(publisher, health));
  sources.push_back(&side->publisher_metrics_);
  http::MetricsServer::Options options;
  options.address = *address;
  options.bind_hard_fail = config.metrics.bind_hard_fail;
  options.mode = conf::name_of(config.mode);
  options.configz = configz(config);
  options.sources = std::move(sources);
  options.warn = std::move(warn);
  auto server = http::MetricsServer::create(std::move(options));
  if (!server) {
    return tl::unexpected(core::Error{"metrics.address: " + server.error().message});
  }
  side->server_ = std::move(*server);
  return side;
}

}  // namespace sluice::daemon
