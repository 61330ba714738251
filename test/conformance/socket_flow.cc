#include "test/conformance/socket_flow.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace sluice::conformance {
namespace {

constexpr int kSlice = 20;       // ms between looks at the counters
constexpr int kPatience = 3000;  // ms until a packet counts as lost
constexpr std::uint16_t kFirstPort = 20000;
constexpr std::uint16_t kLastPort = 29999;

struct Address {
  sockaddr_storage storage{};
  socklen_t size = sizeof(sockaddr_storage);
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

Address to_socket(const SocketName& name) {
  Address out;
  if (name.address.is_v4()) {
    auto* in = reinterpret_cast<sockaddr_in*>(&out.storage);
    in->sin_family = AF_INET;
    in->sin_port = htons(name.port);
    std::memcpy(&in->sin_addr, name.address.data(), 4);
    out.size = sizeof(sockaddr_in);
  } else {
    auto* in = reinterpret_cast<sockaddr_in6*>(&out.storage);
    in->sin6_family = AF_INET6;
    in->sin6_port = htons(name.port);
    std::memcpy(&in->sin6_addr, name.address.data(), 16);
    out.size = sizeof(sockaddr_in6);
  }
  return out;
}

SocketName from_socket(const Address& a) {
  if (a.storage.ss_family == AF_INET) {
    const auto* in = reinterpret_cast<const sockaddr_in*>(&a.storage);
    return {core::IpAddress(core::Ipv4Address::load(&in->sin_addr)), ntohs(in->sin_port)};
  }
  const auto* in = reinterpret_cast<const sockaddr_in6*>(&a.storage);
  return {core::IpAddress(core::Ipv6Address::load(&in->sin6_addr)), ntohs(in->sin6_port)};
}

void set_option(int fd, int level, int name, int value) {
  (void)setsockopt(fd, level, name, &value, sizeof(value));
}

Descriptor make_socket(core::Protocol protocol, bool v4) {
  const int family = v4 ? AF_INET : AF_INET6;
  const int type = protocol == core::Protocol::kTcp   ? SOCK_STREAM
                   : protocol == core::Protocol::kUdp ? SOCK_DGRAM
                                                      : SOCK_RAW;
  const int number = protocol == core::Protocol::kSctp ? IPPROTO_SCTP : 0;
  Descriptor socket(::socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, number));
  if (socket.get() < 0) {
    throw std::runtime_error(std::string("socket: ") + std::strerror(errno));
  }
  set_option(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  return socket;
}

/// CRC32c as SCTP has it.
std::uint32_t crc32c(const std::uint8_t* data, std::size_t size) {
  std::uint32_t crc = ~0u;
  for (std::size_t i = 0; i < size; ++i) {
    crc ^= data[i];
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
    }
  }
  return ~crc;
}

/// An INIT chunk of an association from `sport` to `dport`.
std::array<std::uint8_t, 32> sctp_init(std::uint16_t sport, std::uint16_t dport) {
  std::array<std::uint8_t, 32> p{};
  const auto put16 = [&](std::size_t at, std::uint16_t v) {
    p[at] = static_cast<std::uint8_t>(v >> 8);
    p[at + 1] = static_cast<std::uint8_t>(v);
  };
  put16(0, sport);
  put16(2, dport);
  p[12] = 1;      // INIT
  put16(14, 20);  // its length
  put16(18, 1);   // initiate tag
  put16(20, 1);   // window 64 Ki
  put16(24, 1);   // streams out
  put16(26, 1);   // streams in
  put16(30, 1);   // first TSN
  const std::uint32_t crc = crc32c(p.data(), p.size());
  std::memcpy(p.data() + 8, &crc, sizeof(crc));  // little-endian on the wire
  return p;
}

std::string error_text(int error) {
  return error == ECONNREFUSED || error == EPERM ? "refused" : std::strerror(error);
}

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) {
    close(fd_);
  }
}

void SocketNet::serve(core::Protocol protocol, const SocketName& at) {
  const std::string place = net_.where(at.address);
  for (const Server& s : servers_) {
    if (s.protocol == protocol && s.at == at && s.place == place) {
      return;
    }
  }
  Server server{protocol, at, place, {}};
  net_.in(place, [&] {
    server.socket = make_socket(protocol, at.address.is_v4());
    set_option(server.socket.get(), at.address.is_v4() ? IPPROTO_IP : IPPROTO_IPV6,
               at.address.is_v4() ? IP_FREEBIND : IPV6_FREEBIND, 1);
    Address address = to_socket(at);
    if (protocol == core::Protocol::kSctp) {
      address = to_socket({at.address, 0});
    }
    const bool bound = bind(server.socket.get(), address.get(), address.size) == 0 &&
                       (protocol != core::Protocol::kTcp || listen(server.socket.get(), 64) == 0);
    if (!bound) {
      throw std::runtime_error("cannot serve at " + core::to_string(at.address, at.port) + ": " +
                               std::strerror(errno));
    }
  });
  servers_.push_back(std::move(server));
}

Descriptor SocketNet::make_client(const Flow& flow, Seen& seen) const {
  const bool v4 = flow.from.address.is_v4();
  Descriptor socket = make_socket(flow.protocol, v4);
  const bool raw = flow.protocol == core::Protocol::kSctp;
  Address own = to_socket(raw ? SocketName{flow.from.address, 0} : flow.from);
  if (bind(socket.get(), own.get(), own.size) != 0) {
    throw std::runtime_error("cannot bind to " +
                             core::to_string(flow.from.address, flow.from.port) + ": " +
                             std::strerror(errno));
  }
  seen.client = flow.from;
  Address peer = to_socket(raw ? SocketName{flow.to.address, 0} : flow.to);
  if (!raw) {
    const int rc = connect(socket.get(), peer.get(), peer.size);
    if (rc != 0 && errno != EINPROGRESS) {
      seen.verdict = error_text(errno);
    } else if (flow.protocol == core::Protocol::kUdp && send(socket.get(), "?", 1, 0) < 0) {
      seen.verdict = error_text(errno);
    }
    return socket;
  }
  set_option(socket.get(), v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_RECVERR : IPV6_RECVERR, 1);
  const auto init = sctp_init(flow.from.port, flow.to.port);
  if (sendto(socket.get(), init.data(), init.size(), 0, peer.get(), peer.size) < 0) {
    seen.verdict = error_text(errno);
  }
  return socket;
}

SocketNet::Seen SocketNet::open(Flow flow, Refused refused) {
  if (flow.from.port == 0) {
    flow.from.port = next_port_;
    next_port_ = next_port_ == kLastPort ? kFirstPort : static_cast<std::uint16_t>(next_port_ + 1);
  }
  Seen seen;
  const bool by_rule = refused == Refused::kByARule;
  const core::Family family = flow.to.address.family();
  const Refusals before = by_rule ? refusals_(family) : Refusals{};
  Descriptor client;
  net_.in(flow.place, [&] { client = make_client(flow, seen); });
  if (seen.verdict.empty()) {
    wait(flow, client, by_rule ? &before : nullptr, seen);
  }
  if (by_rule && seen.verdict == "refused") {
    const Refusals after = refusals_(family);
    if (after.rejected > before.rejected) {
      seen.verdict = "rejected";
    } else if (after.dropped > before.dropped) {
      seen.verdict = "dropped";  // on its way out: the call itself fails
    }
  }
  const linger now{1, 0};  // a reset ends the connection, so that its port is free
  (void)setsockopt(client.get(), SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  return seen;
}

void SocketNet::wait(const Flow& flow, const Descriptor& client, const Refusals* before,
                     Seen& seen) {
  std::vector<pollfd> polled = {{client.get(), POLLIN, 0}};
  for (const Server& s : servers_) {
    polled.push_back({s.socket.get(), POLLIN, 0});
  }
  for (int waited = 0; waited < kPatience; waited += kSlice) {
    (void)poll(polled.data(), polled.size(), kSlice);
    if (take(flow.protocol, seen)) {
      if (flow.protocol == core::Protocol::kUdp && poll(polled.data(), 1, kPatience) != 1) {
        seen.verdict = "served, but no answer came";
      }
      return;
    }
    if ((polled[0].revents & (POLLERR | POLLHUP)) != 0) {
      int error = 0;
      socklen_t size = sizeof(error);
      (void)getsockopt(client.get(), SOL_SOCKET, SO_ERROR, &error, &size);
      seen.verdict = error_text(flow.protocol == core::Protocol::kSctp ? ECONNREFUSED : error);
      return;
    }
    if (before != nullptr && refusals_(flow.to.address.family()).dropped > before->dropped) {
      seen.verdict = "dropped";
      return;
    }
  }
  seen.verdict = "lost";
}

bool SocketNet::take(core::Protocol protocol, Seen& seen) {
  return std::any_of(servers_.begin(), servers_.end(),
                     [&](const Server& s) { return s.protocol == protocol && take_one(s, seen); });
}

bool SocketNet::take_one(const Server& server, Seen& seen) {
  Address from;
  if (server.protocol == core::Protocol::kTcp) {
    const Descriptor accepted(
        accept4(server.socket.get(), from.get(), &from.size, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (accepted.get() < 0) {
      return false;
    }
    const linger now{1, 0};
    (void)setsockopt(accepted.get(), SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    seen.source = from_socket(from);
  } else {
    std::uint8_t data[256];
    const ssize_t size =
        recvfrom(server.socket.get(), data, sizeof(data), 0, from.get(), &from.size);
    if (size <= 0) {
      return false;
    }
    seen.source = from_socket(from);
    if (server.protocol == core::Protocol::kUdp) {
      (void)sendto(server.socket.get(), "!", 1, 0, from.get(), from.size);
    } else {
      const std::size_t header = server.at.address.is_v4() ? (data[0] & 0xfu) * 4u : 0;
      const auto port = [&](std::size_t at) {
        return static_cast<std::uint16_t>(data[header + at] << 8 | data[header + at + 1]);
      };
      if (port(2) != server.at.port) {
        return false;
      }
      seen.source.port = port(0);
    }
  }
  seen.server = server.at;
  seen.verdict = "served";
  return true;
}

}  // namespace sluice::conformance
