#include "kni/exception/records.h"

#include <array>

#include <libmnl/libmnl.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

namespace sluice::kni {
namespace {

// Attribute tables are indexed by type; the highest type read here is RTA_VIA (18) or smaller than
// 32 in every family, what lies above is not needed.
constexpr std::size_t kAttributes = 32;
using Attributes = std::array<const nlattr*, kAttributes>;

int keep_attribute(const nlattr* attribute, void* attributes) {
  auto& found = *static_cast<Attributes*>(attributes);
  const std::uint16_t type = mnl_attr_get_type(attribute);
  if (type < found.size()) {
    found[type] = attribute;
  }
  return MNL_CB_OK;
}

Attributes read_attributes(const nlmsghdr& message, std::size_t header_size) {
  Attributes found{};
  (void)mnl_attr_parse(&message, static_cast<unsigned>(header_size), keep_attribute, &found);
  return found;
}

template <class T>
const T* payload_of(const nlmsghdr& message) {
  return mnl_nlmsg_get_payload_len(&message) >= sizeof(T)
             ? static_cast<const T*>(mnl_nlmsg_get_payload(&message))
             : nullptr;
}

std::optional<core::IpAddress> make_address(int family, const void* bytes, std::size_t size) {
  if (family == AF_INET && size == 4) {
    return core::IpAddress(core::Be32::load(bytes));
  }
  if (family == AF_INET6 && size == 16) {
    return core::IpAddress(core::Ipv6Address::load(bytes));
  }
  return std::nullopt;
}

std::optional<core::IpAddress> read_address(int family, const nlattr* attribute) {
  if (attribute == nullptr) {
    return std::nullopt;
  }
  return make_address(family, mnl_attr_get_payload(attribute), mnl_attr_get_payload_len(attribute));
}

/// RTA_VIA: a gateway of the other family.
std::optional<core::IpAddress> read_via(const nlattr* attribute) {
  if (attribute == nullptr || mnl_attr_get_payload_len(attribute) < sizeof(rtvia)) {
    return std::nullopt;
  }
  const auto* via = static_cast<const rtvia*>(mnl_attr_get_payload(attribute));
  return make_address(via->rtvia_family, via->rtvia_addr,
                      mnl_attr_get_payload_len(attribute) - sizeof(rtvia));
}

std::uint32_t read_u32(const nlattr* attribute, std::uint32_t otherwise) {
  return attribute != nullptr && mnl_attr_get_payload_len(attribute) >= 4
             ? mnl_attr_get_u32(attribute)
             : otherwise;
}

Record read_link(const nlmsghdr& message) {
  const auto* header = payload_of<ifinfomsg>(message);
  if (header == nullptr || header->ifi_family != AF_UNSPEC) {
    return {};  // AF_BRIDGE: a port of a bridge, not the link itself
  }
  const Attributes found = read_attributes(message, sizeof(*header));
  LinkRecord link;
  link.removed = message.nlmsg_type == RTM_DELLINK;
  link.index = static_cast<std::uint32_t>(header->ifi_index);
  link.up = (header->ifi_flags & IFF_UP) != 0;
  if (found[IFLA_IFNAME] != nullptr) {
    link.name = mnl_attr_get_str(found[IFLA_IFNAME]);
  }
  return link;
}

Record read_address_record(const nlmsghdr& message) {
  const auto* header = payload_of<ifaddrmsg>(message);
  if (header == nullptr) {
    return {};
  }
  const Attributes found = read_attributes(message, sizeof(*header));
  // On a point-to-point link IFA_ADDRESS is the peer, IFA_LOCAL the own address.
  auto address = read_address(header->ifa_family, found[IFA_LOCAL]);
  if (!address) {
    address = read_address(header->ifa_family, found[IFA_ADDRESS]);
  }
  if (!address) {
    return {};
  }
  AddressRecord record;
  record.removed = message.nlmsg_type == RTM_DELADDR;
  record.link = header->ifa_index;
  record.address = *address;
  record.length = header->ifa_prefixlen;
  record.usable = (read_u32(found[IFA_FLAGS], header->ifa_flags) & IFA_F_DADFAILED) == 0;
  return record;
}

/// Takes interface and gateway of the first next hop that is alive.
void read_multipath(int family, const nlattr* attribute, RouteRecord& route) {
  const auto* hop = static_cast<const rtnexthop*>(mnl_attr_get_payload(attribute));
  auto left = static_cast<int>(mnl_attr_get_payload_len(attribute));
  while (left >= static_cast<int>(sizeof(*hop)) && RTNH_OK(hop, left)) {
    if ((hop->rtnh_flags & RTNH_F_DEAD) == 0) {
      route.link = static_cast<std::uint32_t>(hop->rtnh_ifindex);
      Attributes found{};
      (void)mnl_attr_parse_payload(RTNH_DATA(hop), hop->rtnh_len - sizeof(*hop), keep_attribute,
                                   &found);
      route.gateway = read_address(family, found[RTA_GATEWAY]);
      if (!route.gateway) {
        route.gateway = read_via(found[RTA_VIA]);
      }
      return;
    }
    left -= static_cast<int>(RTNH_ALIGN(hop->rtnh_len));
    hop = reinterpret_cast<const rtnexthop*>(reinterpret_cast<const char*>(hop) +
                                             RTNH_ALIGN(hop->rtnh_len));
  }
}

Record read_route(const nlmsghdr& message) {
  const auto* header = payload_of<rtmsg>(message);
  if (header == nullptr || (header->rtm_family != AF_INET && header->rtm_family != AF_INET6) ||
      (header->rtm_flags & RTM_F_CLONED) != 0 || header->rtm_src_len != 0 ||
      header->rtm_tos != 0) {
    return {};
  }
  RouteRecord route;
  switch (header->rtm_type) {
    case RTN_UNICAST:
      break;
    case RTN_UNREACHABLE:
    case RTN_BLACKHOLE:
    case RTN_PROHIBIT:
      route.unicast = false;
      break;
    default:
      return {};
  }
  const Attributes found = read_attributes(message, sizeof(*header));
  const int family = header->rtm_family;
  const auto destination = read_address(family, found[RTA_DST]);
  if (!destination && header->rtm_dst_len != 0) {
    return {};
  }
  const core::IpAddress any = family == AF_INET ? core::IpAddress(core::Ipv4Address{})
                                                : core::IpAddress(core::Ipv6Address{});
  route.removed = message.nlmsg_type == RTM_DELROUTE;
  route.prefix = core::Cidr(destination.value_or(any), header->rtm_dst_len);
  route.table = read_u32(found[RTA_TABLE], header->rtm_table);
  route.metric = read_u32(found[RTA_PRIORITY], 0);
  route.link = read_u32(found[RTA_OIF], 0);
  route.gateway = read_address(family, found[RTA_GATEWAY]);
  if (!route.gateway) {
    route.gateway = read_via(found[RTA_VIA]);
  }
  if (found[RTA_MULTIPATH] != nullptr) {
    read_multipath(family, found[RTA_MULTIPATH], route);
  }
  return route.prefix.address().is_multicast() ? Record{} : Record{route};
}

Record read_neighbour(const nlmsghdr& message) {
  const auto* header = payload_of<ndmsg>(message);
  if (header == nullptr || (header->ndm_flags & NTF_PROXY) != 0) {
    return {};
  }
  const Attributes found = read_attributes(message, sizeof(*header));
  const auto address = read_address(header->ndm_family, found[NDA_DST]);
  if (!address || address->is_multicast()) {
    return {};
  }
  constexpr unsigned kValid =
      NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT | NUD_NOARP;
  NeighbourRecord record;
  record.removed = message.nlmsg_type == RTM_DELNEIGH;
  record.link = static_cast<std::uint32_t>(header->ndm_ifindex);
  record.address = *address;
  const nlattr* mac = found[NDA_LLADDR];
  if ((header->ndm_state & kValid) != 0 && mac != nullptr && mnl_attr_get_payload_len(mac) == 6) {
    record.state = (header->ndm_state & NUD_PERMANENT) != 0 ? NeighbourRecord::State::kPermanent
                                                            : NeighbourRecord::State::kValid;
    record.mac = core::MacAddress::load(mnl_attr_get_payload(mac));
  } else if ((header->ndm_state & NUD_FAILED) != 0) {
    record.state = NeighbourRecord::State::kFailed;
  }
  return record;
}

}  // namespace

Record read_record(const nlmsghdr& message) {
  switch (message.nlmsg_type) {
    case RTM_NEWLINK:
    case RTM_DELLINK:
      return read_link(message);
    case RTM_NEWADDR:
    case RTM_DELADDR:
      return read_address_record(message);
    case RTM_NEWROUTE:
    case RTM_DELROUTE:
      return read_route(message);
    case RTM_NEWNEIGH:
    case RTM_DELNEIGH:
      return read_neighbour(message);
    default:
      return {};
  }
}

}  // namespace sluice::kni
