#pragma once

#include <yaml-cpp/yaml.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/compile/compile.h"
#include "control/http/health_server.h"
#include "control/publish/rate_limiter.h"
#include "dataplane/core/fwd/udp_reconcile.h"
#include "test/conformance/case.h"

namespace sluice::conformance {

/// What a case needs beyond packets: the sync loop with its failures and retries, the health
/// server with real sockets, and the UDP flows that a sync removes. Time is the case's own.
/// Thread: one; the sockets live in the network namespace of the thread that makes this.
class HostSide {
 public:
  /// @param apply  makes the newest compiled state the one in force; called by every successful
  /// run of the sync loop. @return what is in force then.
  using Apply = std::function<const compile::Compiled&()>;
  /// @param sockets  false: this case has no HTTP, no server is made.
  HostSide(const NodeSetup& node, bool sockets, Apply apply);
  ~HostSide();

  void set_node(const NodeSetup& node);
  /// The state has changed: a sync follows at once.
  void sync();
  /// Time passes; retries that become due run.
  void advance(double seconds);

  /// Performs a step of the kinds syncFailure, http, healthCheck, conntrack.
  /// @return lines "what: expected .., got .."; nullopt: not a step of ours, or of a server that
  /// does not exist.
  [[nodiscard]] std::optional<std::vector<std::string>> perform(const std::string& kind,
                                                                const YAML::Node& value);

 private:
  struct Flow {
    std::string id;
    bool udp = true;
    core::UdpFlow flow;
  };
  void run_due();
  void run_once();
  void remove_stale(const core::ForwardingTable& table);
  [[nodiscard]] http::Moment now() const;
  void check_service(const YAML::Node& want, std::vector<std::string>& failures) const;
  void check_page(const YAML::Node& want, std::vector<std::string>& failures) const;
  void add_flows(const YAML::Node& entries);
  void check_flows(const YAML::Node& ids, bool kept, std::vector<std::string>& failures) const;

  Apply apply_;
  publish::RateLimiter limiter_;
  std::atomic<publish::RateLimiter::TimePoint> now_{};  ///< read by the server's thread
  bool failing_ = false;
  std::uint64_t version_ = 0;
  core::TablePtr in_force_;
  http::NodePortBinds binds_;
  std::vector<http::BindFailure> unopened_;  ///< health ports of the last run
  std::vector<Flow> flows_;
  std::unique_ptr<http::HealthServer> server_;
};

}  // namespace sluice::conformance
