#include "control/http/listen_socket.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace sluice::http {
namespace {

// As many as the kernel allows (net.core.somaxconn): when it is full a probe waits a second for the
// repetition of its SYN.
constexpr int kBacklog = 4096;

socklen_t fill(const core::IpAddress& address, std::uint16_t port, sockaddr_storage& out) {
  if (address.is_v4()) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(port);
    std::memcpy(&in.sin_addr, address.data(), 4);
    std::memcpy(&out, &in, sizeof in);
    return sizeof in;
  }
  sockaddr_in6 in6{};
  in6.sin6_family = AF_INET6;
  in6.sin6_port = htons(port);
  std::memcpy(&in6.sin6_addr, address.data(), 16);
  std::memcpy(&out, &in6, sizeof in6);
  return sizeof in6;
}

tl::unexpected<core::Error> failure(const core::IpAddress& address, std::uint16_t port) {
  return tl::unexpected(core::Error{"cannot listen on " + core::to_string(address, port) + ": " +
                                    std::strerror(errno)});
}

}  // namespace

core::Result<int> open_listen_socket(const core::IpAddress& address, std::uint16_t port) {
  const int fd =
      ::socket(address.is_v4() ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    return failure(address, port);
  }
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (!address.is_v4()) {
    ::setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  }
  sockaddr_storage where{};
  const socklen_t length = fill(address, port, where);
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&where), length) != 0 ||
      ::listen(fd, kBacklog) != 0) {
    auto error = failure(address, port);
    ::close(fd);
    return error;
  }
  return fd;
}

std::uint16_t port_of_socket(int fd) {
  sockaddr_storage where{};
  socklen_t length = sizeof where;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&where), &length) != 0) {
    return 0;
  }
  // The port lies at the same place in both families.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&where)->sin_port);
}

}  // namespace sluice::http
