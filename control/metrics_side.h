#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "conf/config.h"
#include "control/health_side.h"
#include "control/http/metrics_server.h"
#include "control/http/publisher_metrics.h"
#include "control/publish/publisher.h"

namespace sluice::daemon {

/// The metrics page as the configuration wants it. Thread: main.
class MetricsSide {
 public:
  /// Listens. @param health, publisher, sources  borrowed; outlive the object.
  /// @param warn  takes a line for the log; any thread.
  /// Errors: a busy address with metrics.bind-hard-fail; no descriptors.
  [[nodiscard]] static core::Result<std::unique_ptr<MetricsSide>> start(
      const conf::Config& config, const publish::Publisher& publisher, const HealthSide& health,
      std::vector<const core::MetricSource*> sources,
      std::function<void(const std::string&)> warn);

  /// In the order of the configured addresses; 0: not yet.
  [[nodiscard]] std::vector<std::uint16_t> ports() const { return server_->ports(); }

 private:
  MetricsSide(const publish::Publisher& publisher, const HealthSide& health)
      : publisher_metrics_(publisher, [&health] { return health.answers(); }) {}

  http::PublisherMetrics publisher_metrics_;
  std::unique_ptr<http::MetricsServer> server_;  ///< ends before what it asks
};

}  // namespace sluice::daemon
