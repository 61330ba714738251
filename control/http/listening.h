#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "control/http/bind_address.h"
#include "control/http/http_server.h"

namespace sluice::http {

/// Keeps the addresses of one configured server listened on: those that are busy are tried again
/// (H-14). Thread: whoever uses it holds a lock.
class Listening {
 public:
  using Clock = std::chrono::steady_clock;
  /// @param name  of the server, for the log. @param warn  takes a line; may be empty.
  Listening(BindAddress address, std::string name, std::function<void(const std::string&)> warn);

  /// Listens where it does not yet. Errors: an address that cannot be had; told once per reason.
  core::Result<void> try_all(HttpServer& server, const Handler& handler, Clock::time_point now);
  /// It is time for another try.
  [[nodiscard]] bool due(Clock::time_point now) const;
  /// In the order of the addresses; 0: not yet.
  [[nodiscard]] std::vector<std::uint16_t> ports() const;

 private:
  struct Place {
    core::IpAddress address;
    std::optional<HttpServer::Listener> listener;
    std::string last_error;
  };
  const std::uint16_t port_;
  const std::string name_;
  const std::function<void(const std::string&)> warn_;
  std::vector<Place> places_;
  Clock::time_point last_try_;
};

}  // namespace sluice::http
