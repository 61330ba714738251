#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dataplane/core/net/address.h"
#include "dataplane/core/sink.h"

namespace sluice::http {

struct Request {
  std::string_view method;
  std::string_view path;  ///< without the query
};

struct Response {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
};

/// Answers one request. Thread: the server's; must not block.
using Handler = std::function<Response(const Request&)>;

/// What a stranger may use up (F106).
struct Limits {
  /// Open connections over all listeners. One more ends the oldest: whoever asks is answered within
  /// a round trip, so the oldest is the one that asks nothing.
  std::size_t connections = 256;
  std::size_t head_bytes = 16384;             ///< request line and header lines
  std::chrono::milliseconds deadline{10000};  ///< from accept to the end of the answer
};

// A small HTTP/1.1 server for probes: many listeners, one thread, one answer per connection.
//
// Theory of operation: the thread waits for its listeners and for libmicrohttpd's connections. It
// accepts by itself and hands the socket over, so that it can end the oldest connection when there
// are too many; libmicrohttpd does all HTTP. Every answer closes its connection: a probe that keeps
// one open could not notice that its listener is gone (F89).
//
// IPv6 listeners take IPv6 only; both families of an address are two listeners.
class HttpServer {
 public:
  enum class ListenerId : std::uint64_t {};
  struct Listener {
    ListenerId id{};
    std::uint16_t port = 0;  ///< the one asked for, or what the kernel chose for 0
  };

  /// Starts the thread. @param tick  called about once a second by that thread; may be empty.
  /// Errors: no memory or descriptors.
  static core::Result<std::unique_ptr<HttpServer>> create(const Limits& limits,
                                                          std::function<void()> tick);
  ~HttpServer();  ///< ends the thread and closes everything
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// Errors: the address cannot be had; the message names it. Thread: any.
  core::Result<Listener> listen(const core::IpAddress& address, std::uint16_t port,
                                Handler handler);
  /// Frees the port before it returns. A request that is being read gets no answer. Thread: any.
  void close(ListenerId id);

 private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::http
