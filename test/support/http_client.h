#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "dataplane/core/net/address.h"

namespace sluice::test {

/// A TCP connection for tests: blocking, with a time-out for every step.
class TcpConnection {
 public:
  /// nullopt: refused or timed out.
  static std::optional<TcpConnection> connect(const core::IpAddress& address, std::uint16_t port);
  TcpConnection(TcpConnection&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  TcpConnection& operator=(TcpConnection&&) = delete;
  ~TcpConnection();

  /// False: the peer has closed.
  bool send(const std::string& bytes);
  /// Everything until the peer closes, or the time-out.
  std::string read_all();
  /// Waits until the peer closes; false: it did not within the time-out.
  bool closed_by_peer();

 private:
  explicit TcpConnection(int fd) : fd_(fd) {}
  int fd_;
};

struct HttpAnswer {
  int status = 0;
  std::map<std::string, std::string> headers;  ///< names in lower case
  std::string body;
};

/// One request on its own connection. nullopt: nobody listens, or no answer.
std::optional<HttpAnswer> http_get(const core::IpAddress& address, std::uint16_t port,
                                   const std::string& path, const std::string& method = "GET");

}  // namespace sluice::test
