#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "control/http/bind_address.h"
#include "control/http/health_tracker.h"
#include "control/http/listening_server.h"
#include "control/http/service_health.h"

namespace sluice::http {

inline constexpr std::uint16_t kHealthzPort = 10256;             // H-7
inline constexpr const char* kHealthzAddress = "0.0.0.0:10256";  // H-7

/// How often each path answered what (H-13).
struct AnswerCounts {
  std::uint64_t healthz_200 = 0, healthz_503 = 0;
  std::uint64_t livez_200 = 0, livez_503 = 0;
};

// /healthz and /livez, and the health-check node ports: everything of section 14 behind one object.
// Thread: every call may come from any thread.
//
// Who makes it calls requested() when a change arrives, succeeded() after each table that every
// sink has applied, set_node() when the Node object changes and set_broken() when a worker or a
// thread stops.
class HealthServer {
 public:
  struct Options {
    HealthTracker::Options tracker;
    BindAddress healthz;          ///< no addresses: off (H-7)
    bool bind_hard_fail = false;  ///< H-14: a busy address is an error of create()
    Limits limits;
    std::function<Moment()> clock;  ///< empty: the real ones
    /// A line for the log: a bind that failed, once per address and reason.
    std::function<void(const std::string&)> warn;
  };

  /// Errors: no descriptors; with bind_hard_fail a busy address.
  static core::Result<std::unique_ptr<HealthServer>> create(Options options);
  ~HealthServer();
  HealthServer(const HealthServer&) = delete;
  HealthServer& operator=(const HealthServer&) = delete;

  /// A change waits to be applied.
  void requested() { tracker_.requested(now()); }
  /// A table is in force: `ports` are compile's. The addresses of health-check node ports are those
  /// of the first call (NP-7). @return ports that could not be opened; tried again at the next
  /// call.
  std::vector<BindFailure> succeeded(DataSource source, std::uint64_t version,
                                     const NodePortBinds& binds,
                                     const std::vector<compile::HealthPort>& ports);
  /// nullptr: unknown.
  void set_node(const model::Node* node) { tracker_.set_node(node); }
  /// "": all is well.
  void set_broken(std::string reason) { tracker_.set_broken(std::move(reason)); }

  [[nodiscard]] HealthStatus status() const { return tracker_.status(now()); }
  [[nodiscard]] AnswerCounts counts() const;
  /// Ports where /healthz listens at present, in the order of the addresses; 0: not yet.
  [[nodiscard]] std::vector<std::uint16_t> healthz_ports() const { return http_->ports(); }

 private:
  explicit HealthServer(Options options);
  [[nodiscard]] Moment now() const { return options_.clock(); }
  Response answer(const Request& request);

  const Options options_;
  HealthTracker tracker_;
  std::array<std::atomic<std::uint64_t>, 4> counts_{};  ///< healthz 200, 503, livez 200, 503
  std::mutex mutex_;                                    ///< guards told_ and services_
  std::vector<BindFailure> told_;                       ///< by the last succeeded()
  /// Ends before what its handlers use; null only while create() runs.
  std::unique_ptr<ListeningServer> http_;
  std::unique_ptr<ServiceHealth> services_;
};

}  // namespace sluice::http
