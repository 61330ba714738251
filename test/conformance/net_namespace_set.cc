#include "test/conformance/net_namespace_set.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace sluice::conformance {
namespace {

// Next hops; nobody owns them, their MACs are fixed.
constexpr const char* kNodeHop4 = "169.254.1.1";
constexpr const char* kPeerHop4 = "169.254.1.2";
constexpr const char* kNodeHop6 = "fe80::1";
constexpr const char* kPeerHop6 = "fe80::2";

std::runtime_error failure(const std::string& what) {
  return std::runtime_error(what + ": " + std::strerror(errno));
}

void write_file(const std::string& path, const char* value) {
  std::ofstream out(path);
  out << value << std::flush;
}

/// Leaves the calling thread in a new network namespace. @return it.
int new_namespace() {
  if (unshare(CLONE_NEWNET) != 0) {
    throw failure("cannot make a network namespace");
  }
  // Not closed by exec: `ip` opens it by its number.
  const int fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    throw failure("cannot open a network namespace");
  }
  // Every refusal is answered at once.
  write_file("/proc/sys/net/ipv4/icmp_ratelimit", "0");
  write_file("/proc/sys/net/ipv6/icmp/ratelimit", "0");
  for (const char* key : {"all", "default"}) {
    const std::string v4 = std::string("/proc/sys/net/ipv4/conf/") + key;
    write_file(v4 + "/rp_filter", "0");
    write_file(v4 + "/accept_local", "1");
    write_file(v4 + "/send_redirects", "0");
    write_file(std::string("/proc/sys/net/ipv6/conf/") + key + "/accept_dad", "0");
  }
  return fd;
}

std::string mac(unsigned side, std::size_t link) {
  char text[18];
  std::snprintf(text, sizeof(text), "02:00:00:00:%02x:%02zx", side, link);
  return text;
}

std::string host_prefix(const core::IpAddress& a) {
  return core::to_string(a) + (a.is_v4() ? "/32" : "/128");
}

std::string add_address(const core::IpAddress& a, const std::string& device) {
  return "addr add " + host_prefix(a) + (a.is_v4() ? "" : " nodad") + " dev " + device + "\n";
}

bool contains(const std::vector<core::IpAddress>& list, const core::IpAddress& a) {
  return std::find(list.begin(), list.end(), a) != list.end();
}

}  // namespace

NetNamespaceSet::NetNamespaceSet(const std::vector<std::string>& interfaces) {
  std::vector<std::string> names = {kPods, kElsewhere};
  for (const std::string& name : interfaces) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      names.push_back(name);
    }
  }
  for (const std::string& name : names) {
    Link link;
    link.name = name;
    link.mac_node = mac(0, links_.size());
    link.mac_peer = mac(1, links_.size());
    link.fd = new_namespace();
    links_.push_back(std::move(link));
  }
  node_ = new_namespace();
  write_file("/proc/sys/net/ipv4/ip_forward", "1");
  write_file("/proc/sys/net/ipv6/conf/all/forwarding", "1");
  // A kernel sends few ICMP errors to one client; each refusal here is to be seen.
  write_file("/proc/sys/net/ipv4/icmp_ratelimit", "0");
  write_file("/proc/sys/net/ipv6/icmp/ratelimit", "0");
  ip("link set lo up\n");
  for (Link& link : links_) {
    make_link(link);
  }
  ip(std::string("route add default via ") + kPeerHop4 + " dev eth0 onlink\n" +
     "-6 route add default via " + kPeerHop6 + " dev eth0\n");
}

NetNamespaceSet::~NetNamespaceSet() {
  for (const Link& link : links_) {
    close(link.fd);
  }
  close(node_);
}

/// Everything a namespace around the node sends goes to the node, even to its own addresses.
void NetNamespaceSet::make_link(Link& link) {
  const std::string space = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(link.fd);
  const auto hops = [](const std::string& device, const std::string& hop_mac, const char* hop4,
                       const char* hop6) {
    return "link set " + device + " addrgenmode none\nlink set " + device + " up\nneigh add " +
           hop4 + " lladdr " + hop_mac + " dev " + device + " nud permanent\nneigh add " + hop6 +
           " lladdr " + hop_mac + " dev " + device + " nud permanent\n";
  };
  ip("link add " + link.name + " address " + link.mac_node + " type veth peer name eth0 address " +
     link.mac_peer + " netns " + space + "\n" +
     hops(link.name, link.mac_peer, kPeerHop4, kPeerHop6));
  in(link.name, [&] {
    std::string commands = "link set lo up\n" + hops("eth0", link.mac_node, kNodeHop4, kNodeHop6) +
                           "route add default via " + kNodeHop4 +
                           " dev eth0 onlink table 100\n-6 route add default via " + kNodeHop6 +
                           " dev eth0 table 100\n";
    for (const char* family : {"", "-6 "}) {
      commands += std::string(family) + "rule add pref 5 iif lo lookup 100\n" + family +
                  "rule add pref 10 lookup local\n" + family + "rule del pref 0\n";
    }
    ip(commands);
  });
}

/// Lines that begin with "-6 " are about IPv6.
void NetNamespaceSet::ip(const std::string& commands) {
  std::string of_family[2];
  std::istringstream lines(commands);
  for (std::string line; std::getline(lines, line);) {
    const bool v6 = line.starts_with("-6 ");
    of_family[v6 ? 1 : 0] += (v6 ? line.substr(3) : line) + "\n";
  }
  for (const bool v6 : {false, true}) {
    if (of_family[v6 ? 1 : 0].empty()) {
      continue;
    }
    std::FILE* pipe = popen(v6 ? "ip -6 -force -batch -" : "ip -force -batch -", "w");
    if (pipe == nullptr) {
      throw failure("cannot run ip");
    }
    std::fputs(of_family[v6 ? 1 : 0].c_str(), pipe);
    if (pclose(pipe) != 0) {
      throw std::runtime_error("ip does not do: " + of_family[v6 ? 1 : 0]);
    }
  }
}

void NetNamespaceSet::in(const std::string& place, const std::function<void()>& body) const {
  if (setns(fd_of(place), CLONE_NEWNET) != 0) {
    throw failure("cannot enter a network namespace");
  }
  body();
  if (setns(node_, CLONE_NEWNET) != 0) {
    throw failure("cannot return to a network namespace");
  }
}

int NetNamespaceSet::fd_of(const std::string& place) const {
  if (place == kNode) {
    return node_;
  }
  for (const Link& link : links_) {
    if (link.name == place) {
      return link.fd;
    }
  }
  throw std::runtime_error("no such interface: " + place);
}

NetNamespaceSet::Link& NetNamespaceSet::link(const std::string& name) {
  return *std::find_if(links_.begin(), links_.end(), [&](const Link& l) { return l.name == name; });
}

bool NetNamespaceSet::is_node_address(const core::IpAddress& address) const {
  return address.is_loopback() || contains(node_addresses_, address);
}

void NetNamespaceSet::set_node_addresses(const std::vector<core::IpAddress>& addresses) {
  std::string commands;
  for (const core::IpAddress& a : node_addresses_) {
    if (!contains(addresses, a)) {
      commands += "addr del " + host_prefix(a) + " dev eth0\n";
    }
  }
  for (const core::IpAddress& a : addresses) {
    if (!a.is_loopback() && !contains(node_addresses_, a)) {
      commands += add_address(a, "eth0");
    }
  }
  if (!commands.empty()) {
    ip(commands);
  }
  node_addresses_.clear();
  for (const core::IpAddress& a : addresses) {
    if (!a.is_loopback()) {
      node_addresses_.push_back(a);
    }
  }
}

void NetNamespaceSet::place(const core::IpAddress& address, const std::string& interface) {
  Link& l = link(interface);
  if (!contains(l.addresses, address)) {
    in(interface, [&] { ip(add_address(address, "lo")); });
    l.addresses.push_back(address);
  }
  std::string& route = routes_[address];
  if (route != interface) {
    route = interface;
    ip(std::string(address.is_v4() ? "" : "-6 ") + "route replace " + host_prefix(address) +
       " via " + (address.is_v4() ? kPeerHop4 : kPeerHop6) + " dev " + interface +
       (address.is_v4() ? " onlink\n" : "\n"));
  }
}

std::string NetNamespaceSet::where(const core::IpAddress& address) const {
  if (is_node_address(address)) {
    return kNode;
  }
  const auto found = routes_.find(address);
  return found == routes_.end() ? kElsewhere : found->second;
}

}  // namespace sluice::conformance
