#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "control/http/bind_address.h"
#include "control/http/listening_server.h"
#include "dataplane/core/metrics.h"

namespace sluice::http {

inline constexpr std::uint16_t kMetricsPort = 10249;  // AD-1

// The admin server of section 15: /metrics, /healthz ("ok": the daemon answers), /proxyMode and
// /configz.
// Thread: every call may come from any thread.
class MetricsServer {
 public:
  struct Options {
    BindAddress address;          ///< no addresses: off
    bool bind_hard_fail = false;  ///< H-14: a busy address is an error of create()
    std::string mode;             ///< what /proxyMode says
    std::string configz;          ///< what /configz says: JSON
    Limits limits;
    /// Asked for every page, by the server's thread; borrowed, outlive the server.
    std::vector<const core::MetricSource*> sources;
    std::function<void(const std::string&)> warn;  ///< takes a line for the log
  };

  /// Errors: no descriptors; with bind_hard_fail a busy address.
  static core::Result<std::unique_ptr<MetricsServer>> create(Options options);
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  /// In the order of the addresses; 0: not yet.
  [[nodiscard]] std::vector<std::uint16_t> ports() const { return http_->ports(); }

 private:
  explicit MetricsServer(Options options) : options_(std::move(options)) {}
  [[nodiscard]] Response answer(const Request& request) const;

  const Options options_;
  std::unique_ptr<ListeningServer> http_;  ///< ends before what its handler uses
};

}  // namespace sluice::http
