#include "kni/exception/interface_setup.h"

#include <cerrno>
#include <cstring>
#include <fstream>

#include <linux/capability.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

#include "kni/exception/netlink.h"

namespace sluice::kni {
namespace {

core::Result<void> check(int rc, const std::string& what) {
  if (rc == 0) {
    return {};
  }
  return tl::make_unexpected(core::Error{what + ": " + std::strerror(rc)});
}

int set_up_link(Netlink& netlink, int index) {
  Message message(RTM_NEWLINK, 0);
  auto* header = message.extra<ifinfomsg>();
  header->ifi_index = index;
  header->ifi_flags = IFF_UP;
  header->ifi_change = IFF_UP;
  return netlink.request(message);
}

int add_address(Netlink& netlink, int index, const InterfaceSetup::Address& address) {
  Message message(RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE);
  auto* header = message.extra<ifaddrmsg>();
  header->ifa_family = family_number(address.address.family());
  header->ifa_prefixlen = address.length;
  header->ifa_index = static_cast<std::uint32_t>(index);
  header->ifa_flags = address.address.is_v4() ? 0 : IFA_F_NODAD;
  message.put_address(IFA_LOCAL, address.address);
  message.put_address(IFA_ADDRESS, address.address);
  return netlink.request(message);
}

int add_route(Netlink& netlink, int index, const InterfaceSetup::Route& route) {
  Message message(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE);
  auto* header = message.extra<rtmsg>();
  header->rtm_family = family_number(route.to.family());
  header->rtm_dst_len = static_cast<std::uint8_t>(route.to.length());
  header->rtm_table = RT_TABLE_MAIN;
  header->rtm_protocol = RTPROT_STATIC;
  header->rtm_scope = RT_SCOPE_UNIVERSE;
  header->rtm_type = RTN_UNICAST;
  message.put_address(RTA_DST, route.to.address());
  message.put_address(RTA_GATEWAY, route.via);
  message.put_u32(RTA_OIF, static_cast<std::uint32_t>(index));
  return netlink.request(message);
}

}  // namespace

core::Result<void> set_up_interface(const std::string& interface, const InterfaceSetup& setup) {
  const auto index = static_cast<int>(if_nametoindex(interface.c_str()));
  if (index == 0) {
    return tl::make_unexpected(core::Error{"interface " + interface + ": no such interface"});
  }
  auto netlink = Netlink::open(NETLINK_ROUTE, {});
  if (!netlink) {
    return tl::make_unexpected(netlink.error());
  }
  if (auto done = check(set_up_link(*netlink, index), interface + ": bringing it up"); !done) {
    return done;
  }
  for (const auto& address : setup.addresses) {
    const std::string what = interface + ": address " + core::to_string(address.address) + "/" +
                             std::to_string(address.length);
    if (auto done = check(add_address(*netlink, index, address), what); !done) {
      return done;
    }
  }
  for (const auto& route : setup.routes) {
    const std::string what = interface + ": route to " + core::to_string(route.to) + " via " +
                             core::to_string(route.via);
    if (auto done = check(add_route(*netlink, index, route), what); !done) {
      return done;
    }
  }
  return {};
}

std::string missing_privilege() {
  std::ifstream status("/proc/self/status");
  std::string key;
  std::string value;
  std::uint64_t effective = 0;
  while (status >> key && std::getline(status, value)) {
    if (key == "CapEff:") {
      effective = std::stoull(value, nullptr, 16);
    }
  }
  struct Need {
    unsigned bit;
    const char* name;
  };
  constexpr Need kNeeds[] = {{CAP_NET_ADMIN, "CAP_NET_ADMIN"}, {CAP_NET_RAW, "CAP_NET_RAW"}};
  std::string missing;
  for (const Need& need : kNeeds) {
    if ((effective >> need.bit & 1) == 0) {
      missing += (missing.empty() ? "" : " and ") + std::string(need.name);
    }
  }
  return missing.empty() ? "" : "no privilege: " + missing + " is missing, run as root";
}

}  // namespace sluice::kni
