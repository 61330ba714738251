#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "control/compile/compile.h"
#include "control/http/http_server.h"

namespace sluice::http {

/// A health-check port that could not be opened: event FailedToStartServiceHealthcheck (H-6).
struct BindFailure {
  model::ObjectName service;
  core::Family family = core::Family::kIpv4;
  std::uint16_t port = 0;
  std::string reason;  ///< one line
  bool operator==(const BindFailure&) const = default;
};

/// Addresses of health-check node ports (NP-7); empty: that family has none.
struct NodePortBinds {
  std::vector<core::IpAddress> v4;
  std::vector<core::IpAddress> v6;
};
/// NP-7: the node-port addresses of a table; all addresses when they match all.
[[nodiscard]] NodePortBinds node_port_binds(const core::NodePart& node);

/// The HTTP servers of health-check node ports (H-1..H-6): makes the set of listeners equal the
/// wanted one. Thread: one at a time; answers are given on the HTTP server's.
class ServiceHealth {
 public:
  /// @param healthy  H-9, asked for every answer; any thread.
  ServiceHealth(HttpServer& server, NodePortBinds binds, std::function<bool()> healthy);
  ~ServiceHealth();
  ServiceHealth(const ServiceHealth&) = delete;
  ServiceHealth& operator=(const ServiceHealth&) = delete;

  /// After a successful sync: closes what is gone or has another port, then opens what is new or
  /// failed before, and takes over the counts (H-6, F89). @return ports that could not be opened.
  std::vector<BindFailure> reconcile(const std::vector<compile::HealthPort>& wanted);

 private:
  using Key = std::pair<model::ObjectName, core::Family>;
  struct Open {
    std::uint16_t port = 0;
    std::shared_ptr<std::atomic<std::uint32_t>> local_endpoints;
    std::vector<HttpServer::ListenerId> listeners;
  };
  core::Result<Open> open(const compile::HealthPort& wanted);
  void close(const Open& port);

  HttpServer& server_;
  const NodePortBinds binds_;
  const std::function<bool()> healthy_;
  std::map<Key, Open> open_;
};

}  // namespace sluice::http
