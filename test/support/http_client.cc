#include "test/support/http_client.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <sstream>
#include <thread>

namespace sluice::test {
namespace {

constexpr timeval kTimeout{5, 0};  // far more than any answer needs

void fill(const core::IpAddress& address, std::uint16_t port, sockaddr_storage& out,
          socklen_t& length) {
  if (address.is_v4()) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(port);
    std::memcpy(&in.sin_addr, address.data(), 4);
    std::memcpy(&out, &in, length = sizeof in);
  } else {
    sockaddr_in6 in6{};
    in6.sin6_family = AF_INET6;
    in6.sin6_port = htons(port);
    std::memcpy(&in6.sin6_addr, address.data(), 16);
    std::memcpy(&out, &in6, length = sizeof in6);
  }
}

}  // namespace

std::optional<TcpConnection> TcpConnection::connect(const core::IpAddress& address,
                                                    std::uint16_t port) {
  sockaddr_storage where{};
  socklen_t length = 0;
  fill(address, port, where, length);
  const int fd = ::socket(where.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    return std::nullopt;
  }
  TcpConnection out(fd);
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &kTimeout, sizeof kTimeout);
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &kTimeout, sizeof kTimeout);
  // While an interface comes up the kernel takes routes away and puts them back; no address that a
  // test probes is unreachable for long.
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  while (::connect(fd, reinterpret_cast<const sockaddr*>(&where), length) != 0) {
    if (errno != ENETUNREACH || std::chrono::steady_clock::now() > give_up) {
      return std::nullopt;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return out;
}

TcpConnection::~TcpConnection() {
  if (fd_ >= 0) {
    ::close(fd_);
  }
}

bool TcpConnection::send(const std::string& bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::send(fd_, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
    if (n <= 0) {
      return false;
    }
    done += static_cast<std::size_t>(n);
  }
  return true;
}

std::string TcpConnection::read_all() {
  std::string out;
  std::array<char, 4096> chunk{};
  for (;;) {
    const ssize_t n = ::recv(fd_, chunk.data(), chunk.size(), 0);
    if (n <= 0) {
      return out;
    }
    out.append(chunk.data(), static_cast<std::size_t>(n));
  }
}

bool TcpConnection::closed_by_peer() {
  std::array<char, 4096> chunk{};
  for (;;) {
    const ssize_t n = ::recv(fd_, chunk.data(), chunk.size(), 0);
    if (n <= 0) {
      return n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
    }
  }
}

std::optional<HttpAnswer> http_get(const core::IpAddress& address, std::uint16_t port,
                                   const std::string& path, const std::string& method) {
  auto connection = TcpConnection::connect(address, port);
  if (!connection || !connection->send(method + " " + path + " HTTP/1.1\r\nHost: probe\r\n\r\n")) {
    return std::nullopt;
  }
  std::istringstream text(connection->read_all());
  HttpAnswer out;
  std::string version, line;
  if (!(text >> version >> out.status)) {
    return std::nullopt;
  }
  std::getline(text, line);
  while (std::getline(text, line) && line != "\r") {
    const std::size_t colon = line.find(": ");
    std::string name = line.substr(0, colon);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (colon != std::string::npos) {
      out.headers[name] = line.substr(colon + 2, line.size() - colon - 3);
    }
  }
  out.body.assign(std::istreambuf_iterator<char>(text), {});
  return out;
}

}  // namespace sluice::test
