// The claim is an abstract socket that listens: its name belongs to the network namespace, and goes
// with the last process that has it. Whoever waits is connected to it and hears it end.
#include "kni/iptables/claim.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

namespace sluice::kni::ipt {
namespace {

using core::Error;
using Clock = std::chrono::steady_clock;

constexpr std::string_view kName("\0sluice-iptables", 16);

struct Address {
  sockaddr_un address{};
  socklen_t size;
  Address() : size(offsetof(sockaddr_un, sun_path) + kName.size()) {
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, kName.data(), kName.size());
  }
  [[nodiscard]] const sockaddr* get() const noexcept {
    return reinterpret_cast<const sockaddr*>(&address);
  }
};

int make_socket() {
  return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

/// The name is free, or `left` has passed.
void wait_for_holder(std::chrono::milliseconds left) {
  const Address address;
  const int fd = make_socket();
  if (fd >= 0 && connect(fd, address.get(), address.size) == 0) {
    pollfd ended{fd, POLLIN, 0};
    poll(&ended, 1, static_cast<int>(left.count()));
  }
  close(fd);
}

}  // namespace

Claim::~Claim() {
  close(fd_);
}

core::Result<std::unique_ptr<Claim>> Claim::take(std::chrono::milliseconds patience,
                                                 const Ending& ending) {
  const Address address;
  const Clock::time_point until = Clock::now() + patience;
  while (true) {
    const int fd = make_socket();
    if (fd >= 0 && bind(fd, address.get(), address.size) == 0 && listen(fd, 64) == 0) {
      return std::unique_ptr<Claim>(new Claim(fd));
    }
    const int error = errno;
    close(fd);
    if (error != EADDRINUSE) {
      return tl::make_unexpected(
          Error{std::string("iptables: no socket: ") + std::strerror(error)});
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    if (left.count() <= 0) {
      return tl::make_unexpected(
          Error{"iptables: another sluiced writes the chains of this network namespace"});
    }
    if (ending && ending()) {
      return tl::make_unexpected(
          Error{"iptables: told to end while another sluiced writes the chains"});
    }
    wait_for_holder(std::min(left, kAskEvery));
  }
}

}  // namespace sluice::kni::ipt
