#include "test/support/net_namespace.h"

#include <sched.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <thread>

namespace sluice::test {
namespace {

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
  return {};
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
