#include "test/support/net_namespace.h"

#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

namespace sluice::test {
namespace {

/// Connecting a datagram socket asks the routing table and sends nothing.
bool is_reachable(const core::IpAddress& address) {
  if (address.is_v4()) {
    return true;  // is there with the command that adds it
  }
  sockaddr_in6 to{};
  to.sin6_family = AF_INET6;
  to.sin6_port = htons(9);
  std::memcpy(&to.sin6_addr, address.data(), 16);
  const int fd = ::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const bool reachable = ::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
  ::close(fd);
  return reachable;
}

/// The kernel makes the route to a new IPv6 address a moment after the address.
core::Result<void> wait_for_routes(const std::vector<core::IpAddress>& addresses) {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!std::all_of(addresses.begin(), addresses.end(), is_reachable)) {
    if (std::chrono::steady_clock::now() > give_up) {
      return tl::unexpected(core::Error{"a new IPv6 address stays unreachable"});
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return {};
}

/// The child of popen() lives in the namespace of the thread that made it.
core::Result<void> set_up_loopback(const std::vector<core::IpAddress>& addresses) {
  std::FILE* ip = ::popen("ip -batch -", "w");
  if (ip == nullptr) {
    return tl::unexpected(core::Error{"cannot run ip"});
  }
  std::string commands = "link set lo up\n";
  for (const core::IpAddress& a : addresses) {
    if (!a.is_loopback()) {
      commands +=
          "addr add " + core::to_string(a) + (a.is_v4() ? "/32" : "/128 nodad") + " dev lo\n";
    }
  }
  std::fputs(commands.c_str(), ip);
  if (::pclose(ip) != 0) {
    return tl::unexpected(core::Error{"ip could not set up the loopback interface"});
  }
  return wait_for_routes(addresses);
}

}  // namespace

core::Result<void> in_network_namespace(const std::vector<core::IpAddress>& addresses,
                                        const std::function<void()>& body) {
  core::Result<void> result;
  std::thread inside([&] {
    if (::unshare(CLONE_NEWNET) != 0) {
      result = tl::unexpected(
          core::Error{std::string("cannot make a network namespace: ") + std::strerror(errno)});
      return;
    }
    result = set_up_loopback(addresses);
    if (result) {
      body();
    }
  });
  inside.join();
  return result;
}

}  // namespace sluice::test
