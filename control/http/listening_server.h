#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "control/http/bind_address.h"
#include "control/http/http_server.h"

namespace sluice::http {

/// An HTTP server at configured addresses: those that are busy are tried again (H-14).
/// Thread: every call may come from any thread.
class ListeningServer {
 public:
  using Clock = std::chrono::steady_clock;
  struct Options {
    BindAddress address;          ///< no addresses: off
    std::string name;             ///< for the log
    bool bind_hard_fail = false;  ///< H-14: a busy address is an error of create()
    Limits limits;
    std::function<Clock::time_point()> clock = [] { return Clock::now(); };
    /// A line for the log: a bind that failed, once per address and reason. May be empty.
    std::function<void(const std::string&)> warn;
  };

  /// @param handler  may be asked before this returns.
  /// Errors: no descriptors; with bind_hard_fail an address that cannot be had.
  static core::Result<std::unique_ptr<ListeningServer>> create(Options options, Handler handler);
  ListeningServer(const ListeningServer&) = delete;
  ListeningServer& operator=(const ListeningServer&) = delete;

  /// For listeners beside the configured ones.
  [[nodiscard]] HttpServer& server() noexcept { return *server_; }
  /// In the order of the addresses; 0: not yet.
  [[nodiscard]] std::vector<std::uint16_t> ports() const;

 private:
  struct Place {
    core::IpAddress address;
    std::optional<HttpServer::Listener> listener;
    std::string last_error;
  };
  ListeningServer(Options options, Handler handler);
  core::Result<void> try_listen();
  void retry_if_due();

  const Options options_;
  const Handler handler_;
  mutable std::mutex mutex_;  ///< guards what follows
  std::vector<Place> places_;
  Clock::time_point last_try_;
  std::unique_ptr<HttpServer> server_;  ///< ends before what its thread uses
};

}  // namespace sluice::http
