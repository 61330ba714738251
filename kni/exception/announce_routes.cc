#include "kni/exception/announce_routes.h"

#include <cerrno>
#include <cstring>

#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>

namespace sluice::kni {

core::Result<std::unique_ptr<AnnounceRoutes>> AnnounceRoutes::create(
    const std::vector<std::string>& taps) {
  auto netlink = Netlink::open(NETLINK_ROUTE, {});
  if (!netlink) {
    return tl::make_unexpected(netlink.error());
  }
  std::unique_ptr<AnnounceRoutes> routes(new AnnounceRoutes(std::move(*netlink)));
  routes->taps_ = taps;
  routes->remove_rules();
  for (const std::string& tap : taps) {
    for (const core::Family family : {core::Family::kIpv4, core::Family::kIpv6}) {
      const int rc = routes->change_rule(RTM_NEWRULE, family, tap);
      // A kernel without IPv6 has no rules of it and no need for one.
      if (rc != 0 && !(family == core::Family::kIpv6 && rc == EAFNOSUPPORT)) {
        return tl::make_unexpected(core::Error{"routing rule of " + tap + ": " + std::strerror(rc)});
      }
    }
  }
  return routes;
}

AnnounceRoutes::~AnnounceRoutes() {
  (void)set({});
  remove_rules();
}

core::Result<void> AnnounceRoutes::set(const std::vector<core::IpAddress>& announced) {
  const std::set<core::IpAddress> wanted(announced.begin(), announced.end());
  core::Result<void> result;
  const auto change = [&](std::uint16_t type, const core::IpAddress& address) {
    const int rc = change_route(type, address);
    if (rc != 0 && rc != ESRCH && result) {
      result = tl::make_unexpected(core::Error{"unreachable route for " + core::to_string(address) +
                                               ": " + std::strerror(rc)});
    }
    return rc == 0 || rc == ESRCH;
  };
  for (auto at = present_.begin(); at != present_.end();) {
    at = wanted.count(*at) == 0 && change(RTM_DELROUTE, *at) ? present_.erase(at) : std::next(at);
  }
  for (const core::IpAddress& address : wanted) {
    if (present_.count(address) == 0 && change(RTM_NEWROUTE, address)) {
      present_.insert(address);
    }
  }
  return result;
}

int AnnounceRoutes::change_rule(std::uint16_t type, core::Family family, const std::string& tap) {
  const bool add = type == RTM_NEWRULE;
  Message message(type, static_cast<std::uint16_t>(add ? NLM_F_CREATE | NLM_F_EXCL : 0));
  auto* header = message.extra<fib_rule_hdr>();
  header->family = family_number(family);
  header->action = FR_ACT_TO_TBL;
  message.put_u32(FRA_TABLE, kAnnounceTable);
  message.put_u32(FRA_PRIORITY, kAnnounceTable);
  message.put_string(FRA_IFNAME, tap);
  const int rc = netlink_.request(message);
  return add && rc == EEXIST ? 0 : rc;
}

int AnnounceRoutes::change_route(std::uint16_t type, const core::IpAddress& address) {
  const bool add = type == RTM_NEWROUTE;
  Message message(type, static_cast<std::uint16_t>(add ? NLM_F_CREATE | NLM_F_REPLACE : 0));
  auto* header = message.extra<rtmsg>();
  header->rtm_family = family_number(address.family());
  header->rtm_dst_len = static_cast<std::uint8_t>(address.size() * 8);
  header->rtm_protocol = RTPROT_STATIC;
  header->rtm_scope = RT_SCOPE_UNIVERSE;
  header->rtm_type = RTN_UNREACHABLE;
  message.put_u32(RTA_TABLE, kAnnounceTable);
  message.put_address(RTA_DST, address);
  return netlink_.request(message);
}

void AnnounceRoutes::remove_rules() {
  constexpr int kMost = 100;  // one a tap; more are leftovers
  for (const std::string& tap : taps_) {
    for (const core::Family family : {core::Family::kIpv4, core::Family::kIpv6}) {
      for (int i = 0; i < kMost && change_rule(RTM_DELRULE, family, tap) == 0; ++i) {
      }
    }
  }
}

}  // namespace sluice::kni
