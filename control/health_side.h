#pragma once

#include <functional>
#include <memory>
#include <string>

#include "conf/config.h"
#include "control/http/health_feed.h"
#include "control/http/health_server.h"
#include "control/publish/publisher.h"

namespace sluice::daemon {

/// Health endpoints as the configuration wants them, fed by the publisher. Thread: main.
class HealthSide {
 public:
  /// Listens and follows `publisher`, which need not run yet and outlives the object.
  /// @param warn  takes a line for the log; any thread.
  /// Errors: a busy address with healthz.bind-hard-fail; no descriptors.
  [[nodiscard]] static core::Result<std::unique_ptr<HealthSide>> start(
      const conf::Config& config, const publish::Publisher& publisher,
      std::function<void(const std::string&)> warn);

  /// Where /healthz listens; 0: not yet. In the order of the configured addresses.
  [[nodiscard]] std::vector<std::uint16_t> ports() const { return server_->healthz_ports(); }
  [[nodiscard]] http::AnswerCounts answers() const { return server_->counts(); }

 private:
  HealthSide(std::unique_ptr<http::HealthServer> server, const publish::Publisher& publisher)
      : server_(std::move(server)), feed_(publisher, *server_) {}

  std::unique_ptr<http::HealthServer> server_;
  http::HealthFeed feed_;
};

}  // namespace sluice::daemon
