#include "bench/kernel_traffic.h"

#include <arpa/inet.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

#include "bench/kernel_cluster.h"

namespace sluice::bench {
namespace {

constexpr std::size_t kBurst = 64;

/// What the client is told: `flows` packets to addresses base, base + 1, ...
struct Order {
  std::uint32_t base;
  std::uint32_t count;
  std::uint32_t flows;
  std::uint16_t port;
};

void shell(const std::string& command) {
  if (std::system(command.c_str()) != 0) {
    end_program(command + ": failed; root, iproute2 and conntrack are needed");
  }
}

/// Sockets of the client; each has a source port, so that each is another flow to an address.
class Sender {
 public:
  void send(const Order& order) {
    const std::size_t rounds = (order.flows + order.count - 1) / order.count;
    while (sockets_.size() < rounds) {
      sockets_.push_back(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    }
    std::size_t sent = 0;
    for (std::size_t r = 0; r < rounds; ++r) {
      for (std::uint32_t i = 0; i < order.count && sent < order.flows; i += kBurst) {
        const std::size_t n =
            std::min<std::size_t>({kBurst, order.count - i, order.flows - sent});
        burst(sockets_[r], order, i, n);
        sent += n;
      }
    }
  }

 private:
  void burst(int socket, const Order& order, std::uint32_t first, std::size_t n) {
    static char payload[18] = {};  // the smallest frame
    iovec piece{payload, sizeof(payload)};
    std::array<sockaddr_in, kBurst> to{};
    std::array<mmsghdr, kBurst> messages{};
    for (std::size_t k = 0; k < n; ++k) {
      to[k].sin_family = AF_INET;
      to[k].sin_port = htons(order.port);
      to[k].sin_addr.s_addr = htonl(order.base + first + static_cast<std::uint32_t>(k));
      messages[k].msg_hdr.msg_name = &to[k];
      messages[k].msg_hdr.msg_namelen = sizeof(to[k]);
      messages[k].msg_hdr.msg_iov = &piece;
      messages[k].msg_hdr.msg_iovlen = 1;
    }
    std::size_t done = 0;
    while (done < n) {
      const int rc = ::sendmmsg(socket, &messages[done], static_cast<unsigned>(n - done), 0);
      done += rc > 0 ? static_cast<std::size_t>(rc) : 1;  // one that is refused counts as lost
    }
  }

  std::vector<int> sockets_;
};

/// A peer's whole life: its namespace first, then one order after the other.
[[noreturn]] void live(int orders, int answers) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::unshare(CLONE_NEWNET) != 0) {
    _exit(1);
  }
  char done = 'k';
  Sender sender;
  Order order{};
  static_cast<void>(::write(answers, &done, 1));
  while (::read(orders, &order, sizeof(order)) == static_cast<ssize_t>(sizeof(order))) {
    sender.send(order);
    static_cast<void>(::write(answers, &done, 1));
  }
  _exit(0);
}

}  // namespace

KernelTraffic::Peer KernelTraffic::start() {
  int to[2];
  int from[2];
  if (::pipe(to) != 0 || ::pipe(from) != 0) {
    end_program("pipes");
  }
  Peer peer;
  peer.pid = ::fork();
  if (peer.pid == 0) {
    ::close(to[1]);
    ::close(from[0]);
    live(to[0], from[1]);
  }
  ::close(to[0]);
  ::close(from[1]);
  peer.to = to[1];
  peer.from = from[0];
  char ready = 0;
  if (::read(peer.from, &ready, 1) != 1) {
    end_program("a network namespace is needed; run as root");
  }
  return peer;
}

void KernelTraffic::stop(Peer& peer) {
  ::close(peer.to);
  ::close(peer.from);
  ::kill(peer.pid, SIGKILL);  // the other one holds its pipe, too
  ::waitpid(peer.pid, nullptr, 0);
}

KernelTraffic::KernelTraffic() : client_(start()), sink_(start()) {
  set_up();
}

KernelTraffic::~KernelTraffic() {
  stop(client_);
  stop(sink_);
}

void KernelTraffic::set_up() {
  const auto in = [](const Peer& peer, const std::string& command) {
    shell("nsenter -t " + std::to_string(peer.pid) + " -n " + command);
  };
  const auto cable = [&](const char* name, const Peer& peer, const char* ours, const char* theirs) {
    shell(std::string("ip link add ") + name + " type veth peer name eth0 netns " +
          std::to_string(peer.pid));
    shell(std::string("ip link set ") + name + " up && ip addr add " + ours + "/24 dev " + name);
    in(peer, "ip link set eth0 up");
    in(peer, std::string("ip addr add ") + theirs + "/24 dev eth0");
    in(peer, std::string("ip route add default via ") + ours);
    shell(std::string("ping -q -c 1 -W 2 ") + theirs + " > /dev/null");
  };
  shell("ip link set lo up && sysctl -qw net.ipv4.ip_forward=1");
  cable("client", client_, "198.51.100.1", "198.51.100.2");
  cable("sink", sink_, "192.0.2.11", "192.0.2.12");
  shell("ip route add 10.64.0.0/10 via 192.0.2.12");
  in(sink_, "sysctl -qw net.ipv4.ip_forward=0 net.ipv4.conf.all.rp_filter=0");
  shell("ping -q -c 1 -W 2 192.0.2.12 > /dev/null");
}

std::size_t KernelTraffic::arrived() const {
  std::ifstream in("/proc/" + std::to_string(sink_.pid) + "/net/dev");
  for (std::string line; std::getline(in, line);) {
    const std::size_t at = line.find("eth0:");
    unsigned long bytes = 0;
    unsigned long packets = 0;
    if (at != std::string::npos &&
        std::sscanf(line.c_str() + at + 5, "%lu %lu", &bytes, &packets) == 2) {
      return packets;
    }
  }
  return 0;
}

double KernelTraffic::round(const std::string& order) {
  using Clock = std::chrono::steady_clock;
  const std::size_t before = arrived();
  const auto began = Clock::now();
  char done = 0;
  if (::write(client_.to, order.data(), order.size()) < 0 || ::read(client_.from, &done, 1) != 1) {
    end_program("the client ended");
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
  return static_cast<double>(arrived() - before) / seconds;
}

PacketRate KernelTraffic::run_to(std::uint32_t base, std::size_t count, std::uint16_t port,
                                 std::size_t flows) {
  const Order order{base, static_cast<std::uint32_t>(count), static_cast<std::uint32_t>(flows),
                    port};
  const std::string bytes(reinterpret_cast<const char*>(&order), sizeof(order));
  shell("conntrack -F > /dev/null 2>&1");
  PacketRate rate;
  rate.new_flows = round(bytes);
  rate.established = round(bytes);
  return rate;
}

PacketRate KernelTraffic::run(std::size_t services, std::size_t flows) {
  return run_to(kClusterIps, services, kServicePort, flows);
}

PacketRate KernelTraffic::run_direct(std::size_t endpoints, std::size_t flows) {
  return run_to(kEndpoints, endpoints, 8080, flows);
}

}  // namespace sluice::bench
