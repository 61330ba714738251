#include "kni/exception/records.h"

#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

#include <gtest/gtest.h>

#include "kni/exception/netlink.h"

namespace sluice::kni {
namespace {

core::IpAddress address(const char* text) { return *core::parse_address(text); }

rtmsg* route_header(Message& message, std::uint8_t family, std::uint8_t length) {
  auto* header = message.extra<rtmsg>();
  header->rtm_family = family;
  header->rtm_dst_len = length;
  header->rtm_table = RT_TABLE_MAIN;
  header->rtm_type = RTN_UNICAST;
  return header;
}

TEST(ReadRecord, ReadsALink) {
  Message message(RTM_NEWLINK, 0);
  auto* header = message.extra<ifinfomsg>();
  header->ifi_index = 7;
  header->ifi_flags = IFF_UP;
  message.put_string(IFLA_IFNAME, "slc-gw0");

  const Record record = read_record(*message.header());

  const auto& link = std::get<LinkRecord>(record);
  EXPECT_EQ(link.index, 7u);
  EXPECT_EQ(link.name, "slc-gw0");
  EXPECT_TRUE(link.up);
  EXPECT_FALSE(link.removed);
}

TEST(ReadRecord, TakesTheLocalAddressOfAPointToPointLink) {
  Message message(RTM_NEWADDR, 0);
  auto* header = message.extra<ifaddrmsg>();
  header->ifa_family = AF_INET;
  header->ifa_prefixlen = 32;
  header->ifa_index = 3;
  message.put_address(IFA_ADDRESS, address("10.0.0.2"));
  message.put_address(IFA_LOCAL, address("10.0.0.1"));

  const auto record = std::get<AddressRecord>(read_record(*message.header()));

  EXPECT_EQ(record.address, address("10.0.0.1"));
  EXPECT_EQ(record.link, 3u);
}

TEST(ReadRecord, ReadsARouteWithItsGateway) {
  Message message(RTM_NEWROUTE, 0);
  route_header(message, AF_INET6, 64);
  message.put_address(RTA_DST, address("fd00:1::"));
  message.put_address(RTA_GATEWAY, address("fd00::1"));
  message.put_u32(RTA_OIF, 5);
  message.put_u32(RTA_PRIORITY, 1024);

  const auto route = std::get<RouteRecord>(read_record(*message.header()));

  EXPECT_EQ(core::to_string(route.prefix), "fd00:1::/64");
  EXPECT_EQ(route.gateway, address("fd00::1"));
  EXPECT_EQ(route.link, 5u);
  EXPECT_EQ(route.metric, 1024u);
  EXPECT_TRUE(route.unicast);
}

TEST(ReadRecord, TakesADefaultRouteWithoutDestination) {
  Message message(RTM_NEWROUTE, 0);
  route_header(message, AF_INET, 0);
  message.put_address(RTA_GATEWAY, address("10.0.0.1"));
  message.put_u32(RTA_OIF, 2);

  const auto route = std::get<RouteRecord>(read_record(*message.header()));

  EXPECT_EQ(core::to_string(route.prefix), "0.0.0.0/0");
}

TEST(ReadRecord, LeavesOutLocalBroadcastAndClonedRoutes) {
  for (const std::uint8_t type : {RTN_LOCAL, RTN_BROADCAST, RTN_MULTICAST, RTN_ANYCAST}) {
    Message message(RTM_NEWROUTE, 0);
    route_header(message, AF_INET, 32)->rtm_type = type;
    message.put_address(RTA_DST, address("10.0.0.1"));
    EXPECT_TRUE(std::holds_alternative<std::monostate>(read_record(*message.header())));
  }
  Message cloned(RTM_NEWROUTE, 0);
  route_header(cloned, AF_INET6, 128)->rtm_flags = RTM_F_CLONED;
  cloned.put_address(RTA_DST, address("fd00::2"));
  EXPECT_TRUE(std::holds_alternative<std::monostate>(read_record(*cloned.header())));
}

TEST(ReadRecord, ReadsNeighbourStates) {
  struct Case {
    std::uint16_t nud;
    NeighbourRecord::State state;
  };
  for (const Case& c : {Case{NUD_REACHABLE, NeighbourRecord::State::kValid},
                        Case{NUD_STALE, NeighbourRecord::State::kValid},
                        Case{NUD_PROBE, NeighbourRecord::State::kValid},
                        Case{NUD_PERMANENT, NeighbourRecord::State::kPermanent},
                        Case{NUD_INCOMPLETE, NeighbourRecord::State::kResolving},
                        Case{NUD_FAILED, NeighbourRecord::State::kFailed}}) {
    Message message(RTM_NEWNEIGH, 0);
    auto* header = message.extra<ndmsg>();
    header->ndm_family = AF_INET;
    header->ndm_ifindex = 4;
    header->ndm_state = c.nud;
    message.put_address(NDA_DST, address("10.0.0.9"));
    const std::uint8_t mac[6] = {2, 0, 0, 0, 0, 9};
    mnl_attr_put(message.header(), NDA_LLADDR, sizeof(mac), mac);

    const auto neighbour = std::get<NeighbourRecord>(read_record(*message.header()));

    EXPECT_EQ(neighbour.state, c.state) << c.nud;
    EXPECT_EQ(neighbour.link, 4u);
  }
}

TEST(ReadRecord, SurvivesTruncatedMessages) {
  Message message(RTM_NEWROUTE, 0);
  route_header(message, AF_INET, 24);
  message.put_address(RTA_DST, address("10.1.0.0"));
  message.put_address(RTA_GATEWAY, address("10.0.0.1"));
  nlmsghdr* header = message.header();
  for (std::uint32_t length = header->nlmsg_len; length >= NLMSG_HDRLEN; --length) {
    header->nlmsg_len = length;
    (void)read_record(*header);  // must not read beyond: ASan watches
  }
}

}  // namespace
}  // namespace sluice::kni
