#include "dataplane/dpdk/netdev.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include <linux/bpf.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "dataplane/dpdk/unique_fd.h"

namespace sluice::dpdk {
namespace {

core::Error failure(const std::string& name, const char* what, int code) {
  return {"interface " + name + ": " + what + ": " + std::strerror(code)};
}

/// An ioctl on an interface by name, with a fresh socket.
class InterfaceIoctl {
 public:
  explicit InterfaceIoctl(const std::string& name)
      : fd_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    name.copy(request.ifr_name, sizeof(request.ifr_name) - 1);
  }
  bool call(unsigned long code) {
    if (ioctl(fd_.get(), code, &request) == 0) {
      return true;
    }
    error = errno;
    return false;
  }
  bool ethtool(void* command) {
    request.ifr_data = static_cast<char*>(command);
    return call(SIOCETHTOOL);
  }
  ifreq request = {};
  int error = 0;

 private:
  UniqueFd fd_;
};

int bpf(bpf_cmd command, bpf_attr& attributes) {
  return static_cast<int>(syscall(SYS_bpf, command, &attributes, sizeof(attributes)));
}

void read_ethtool(const std::string& name, NetdevInfo& info) {
  ethtool_drvinfo driver = {};
  driver.cmd = ETHTOOL_GDRVINFO;
  if (InterfaceIoctl(name).ethtool(&driver)) {
    info.driver = driver.driver;
  }
  ethtool_channels channels = {};
  channels.cmd = ETHTOOL_GCHANNELS;
  if (InterfaceIoctl(name).ethtool(&channels)) {
    info.rx_queues = std::max(1u, channels.rx_count + channels.combined_count);
    info.max_rx_queues = std::max(info.rx_queues, std::max(channels.max_rx, channels.max_combined));
  }
}

}  // namespace

core::Result<NetdevInfo> read_netdev(const std::string& name) {
  InterfaceIoctl query(name);
  NetdevInfo info;
  info.name = name;
  if (name.empty() || name.size() >= IFNAMSIZ || !query.call(SIOCGIFINDEX)) {
    return tl::make_unexpected(core::Error{"interface " + name + ": no such interface"});
  }
  info.index = static_cast<std::uint32_t>(query.request.ifr_ifindex);
  if (!query.call(SIOCGIFHWADDR)) {
    return tl::make_unexpected(failure(name, "reading its MAC address", query.error));
  }
  if (query.request.ifr_hwaddr.sa_family != ARPHRD_ETHER) {
    return tl::make_unexpected(core::Error{"interface " + name + ": it is not Ethernet"});
  }
  info.mac = core::MacAddress::load(query.request.ifr_hwaddr.sa_data);
  if (query.call(SIOCGIFMTU)) {
    info.mtu = static_cast<std::uint16_t>(std::min(query.request.ifr_mtu, 65535));
  }
  if (query.call(SIOCGIFFLAGS)) {
    info.up = (query.request.ifr_flags & IFF_UP) != 0;
  }
  read_ethtool(name, info);
  return info;
}

core::Result<void> set_queues(const std::string& name, std::uint32_t queues) {
  ethtool_channels channels = {};
  channels.cmd = ETHTOOL_GCHANNELS;
  InterfaceIoctl get(name);
  if (!get.ethtool(&channels)) {
    return tl::make_unexpected(failure(name, "reading its queues", get.error));
  }
  channels.cmd = ETHTOOL_SCHANNELS;
  if (channels.max_combined > 0) {
    channels.combined_count = queues;
  } else {
    channels.rx_count = queues;
    channels.tx_count = std::min(std::max(queues, channels.tx_count), channels.max_tx);
  }
  InterfaceIoctl set(name);
  if (!set.ethtool(&channels)) {
    return tl::make_unexpected(failure(name, "setting its queues", set.error));
  }
  return {};
}

core::Result<void> set_mtu(const std::string& name, std::uint16_t mtu) {
  InterfaceIoctl set(name);
  set.request.ifr_mtu = mtu;
  if (!set.call(SIOCSIFMTU)) {
    return tl::make_unexpected(failure(name, "setting its MTU", set.error));
  }
  return {};
}

core::Result<void> set_up(const std::string& name) {
  InterfaceIoctl flags(name);
  if (flags.call(SIOCGIFFLAGS)) {
    flags.request.ifr_flags = static_cast<short>(flags.request.ifr_flags | IFF_UP);
    if (flags.call(SIOCSIFFLAGS)) {
      return {};
    }
  }
  return tl::make_unexpected(failure(name, "bringing it up", flags.error));
}

std::string xdp_unusable_reason() {
  const UniqueFd family(socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0));
  if (family.get() < 0) {
    return std::string("no AF_XDP socket: ") + std::strerror(errno);
  }
  bpf_attr map = {};
  map.map_type = BPF_MAP_TYPE_XSKMAP;
  map.key_size = sizeof(std::uint32_t);
  map.value_size = sizeof(std::uint32_t);
  map.max_entries = 1;
  const UniqueFd sockets(bpf(BPF_MAP_CREATE, map));
  if (sockets.get() < 0) {
    return std::string("no BPF map of AF_XDP sockets: ") + std::strerror(errno);
  }
  // r0 = XDP_PASS; exit
  bpf_insn code[2] = {};
  code[0].code = BPF_ALU64 | BPF_MOV | BPF_K;
  code[0].imm = XDP_PASS;
  code[1].code = BPF_JMP | BPF_EXIT;
  bpf_attr load = {};
  load.prog_type = BPF_PROG_TYPE_XDP;
  load.insns = reinterpret_cast<std::uintptr_t>(code);
  load.insn_cnt = 2;
  load.license = reinterpret_cast<std::uintptr_t>("BSD");
  const UniqueFd program(bpf(BPF_PROG_LOAD, load));
  return program.get() >= 0 ? "" : std::string("no XDP program: ") + std::strerror(errno);
}

std::vector<std::string> af_xdp_vdevs(const std::string& interface, std::uint32_t queues,
                                      std::uint32_t number) {
  std::vector<std::string> vdevs;
  for (std::uint32_t queue = 0; queue < queues; ++queue) {
    // force_copy and busy_budget: see README.md, "Ports".
    vdevs.push_back("net_af_xdp" + std::to_string(number + queue) + ",iface=" + interface +
                    ",start_queue=" + std::to_string(queue) +
                    ",queue_count=1,force_copy=1,busy_budget=0");
  }
  return vdevs;
}

std::string af_packet_vdev(const std::string& interface, std::uint32_t queues,
                           std::uint32_t number, std::uint16_t mtu) {
  // The ring frame holds the tpacket header (52 bytes) and the Ethernet frame with one VLAN tag.
  const std::uint32_t frame = std::bit_ceil(std::max(2048u, std::uint32_t{mtu} + 18 + 52));
  const std::uint32_t block = std::max(4096u, frame);
  return "net_af_packet" + std::to_string(number) + ",iface=" + interface +
         ",qpairs=" + std::to_string(queues) + ",blocksz=" + std::to_string(block) +
         ",framesz=" + std::to_string(frame) + ",framecnt=1024";
}

}  // namespace sluice::dpdk
