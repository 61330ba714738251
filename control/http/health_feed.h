#pragma once

#include <atomic>
#include <thread>

#include "control/http/health_server.h"
#include "control/publish/publisher.h"

namespace sluice::http {

/// Tells a HealthServer what a Publisher does, on a thread of its own: binding sockets never holds
/// up a change. Thread: one for construction and stop().
class HealthFeed {
 public:
  /// Starts. @param publisher, server  borrowed; outlive the object.
  HealthFeed(const publish::Publisher& publisher, HealthServer& server);
  ~HealthFeed();  ///< stops
  HealthFeed(const HealthFeed&) = delete;
  HealthFeed& operator=(const HealthFeed&) = delete;

  /// Ends the thread, within 0.1 s.
  void stop();

 private:
  void run();
  void pass_on(const publish::Standing& before, const publish::Standing& now);

  const publish::Publisher& publisher_;
  HealthServer& server_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace sluice::http
