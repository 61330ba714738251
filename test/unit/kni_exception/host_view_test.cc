#include "kni/exception/host_view.h"

#include <linux/rtnetlink.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::kni {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

core::IpAddress address(const char* text) { return *core::parse_address(text); }

RouteRecord route(const char* prefix, std::uint32_t link, std::uint32_t metric = 0,
                  const char* gateway = nullptr) {
  RouteRecord record;
  record.prefix = *core::parse_cidr(prefix);
  record.table = RT_TABLE_MAIN;
  record.link = link;
  record.metric = metric;
  if (gateway != nullptr) {
    record.gateway = address(gateway);
  }
  return record;
}

NeighbourRecord neighbour(std::uint32_t link, const char* ip, NeighbourRecord::State state) {
  NeighbourRecord record;
  record.link = link;
  record.address = address(ip);
  record.state = state;
  record.mac = *core::parse_mac("02:00:00:00:00:01");
  return record;
}

class HostViewTest : public testing::Test {
 protected:
  void SetUp() override {
    view.apply(LinkRecord{false, 1, "lo", true});
    view.apply(LinkRecord{false, 2, "eth0", true});
    view.apply(LinkRecord{false, 10, "slc-a", true});
    view.apply(LinkRecord{false, 11, "slc-b", true});
  }
  HostView view{{"slc-a", "slc-b"}};
};

TEST_F(HostViewTest, NamesInterfaceAndPortOfAddresses) {
  view.apply(AddressRecord{false, 10, address("10.0.0.1"), 24, true});
  view.apply(AddressRecord{false, 2, address("192.0.2.1"), 24, true});
  view.apply(AddressRecord{false, 1, address("127.0.0.1"), 8, true});

  EXPECT_TRUE(view.take_addresses_changed());
  EXPECT_THAT(view.addresses(),
              ElementsAre(HostAddress{address("192.0.2.1"), "eth0", 24, std::nullopt},
                          HostAddress{address("10.0.0.1"), "slc-a", 24, 0}));
  EXPECT_FALSE(view.take_addresses_changed());
}

TEST_F(HostViewTest, DropsAddressesOfALinkThatGoes) {
  view.apply(AddressRecord{false, 10, address("10.0.0.1"), 24, true});

  view.apply(LinkRecord{true, 10, "slc-a", false});

  EXPECT_THAT(view.addresses(), IsEmpty());
}

TEST_F(HostViewTest, OrdersEqualPrefixesByMetricAndGivesForeignRoutesToTheHost) {
  view.set_routes({route("0.0.0.0/0", 10, 200, "10.0.0.254"), route("0.0.0.0/0", 2, 100),
                   route("10.0.0.0/24", 10)});

  EXPECT_TRUE(view.take_routes_changed());
  EXPECT_THAT(view.routes(),
              ElementsAre(HostRoute{*core::parse_cidr("0.0.0.0/0"), std::nullopt, std::nullopt},
                          HostRoute{*core::parse_cidr("0.0.0.0/0"), 0, address("10.0.0.254")},
                          HostRoute{*core::parse_cidr("10.0.0.0/24"), 0, std::nullopt}));
}

TEST_F(HostViewTest, GivesRefusedRoutesToTheHost) {
  RouteRecord refused = route("10.9.0.0/16", 10);
  refused.unicast = false;

  view.set_routes({refused});

  EXPECT_THAT(view.routes(), ElementsAre(HostRoute{*core::parse_cidr("10.9.0.0/16"), std::nullopt,
                                                   std::nullopt}));
}

TEST_F(HostViewTest, LeavesOutOtherTables) {
  RouteRecord other = route("10.9.0.0/16", 10);
  other.table = 100;

  view.set_routes({other});

  EXPECT_THAT(view.routes(), IsEmpty());
}

TEST_F(HostViewTest, RoutesAreStaleAfterALinkAddressOrRouteEvent) {
  view.set_routes({});
  ASSERT_FALSE(view.routes_stale());

  view.apply(route("10.9.0.0/16", 10));
  EXPECT_TRUE(view.routes_stale());
  view.set_routes({});
  view.apply(AddressRecord{false, 10, address("10.0.0.1"), 24, true});
  EXPECT_TRUE(view.routes_stale());
}

TEST_F(HostViewTest, FollowsANeighbourThroughItsStates) {
  view.apply(neighbour(11, "10.0.1.9", NeighbourRecord::State::kResolving));
  view.apply(neighbour(11, "10.0.1.9", NeighbourRecord::State::kValid));
  view.apply(neighbour(11, "10.0.1.9", NeighbourRecord::State::kFailed));
  NeighbourRecord gone = neighbour(11, "10.0.1.9", NeighbourRecord::State::kFailed);
  gone.removed = true;
  view.apply(gone);

  const auto changes = view.take_neighbour_changes();

  ASSERT_EQ(changes.size(), 4u);
  EXPECT_EQ(changes[0].state, HostNeighbour::State::kUnresolved);
  EXPECT_EQ(changes[1].state, HostNeighbour::State::kReachable);
  EXPECT_EQ(changes[1].port, 1u);
  EXPECT_EQ(core::to_string(changes[1].mac), "02:00:00:00:00:01");
  EXPECT_EQ(changes[2].state, HostNeighbour::State::kFailed);
  EXPECT_EQ(changes[3].state, HostNeighbour::State::kUnresolved);
}

TEST_F(HostViewTest, IgnoresNeighboursOnOtherInterfaces) {
  view.apply(neighbour(2, "192.0.2.9", NeighbourRecord::State::kValid));

  EXPECT_THAT(view.take_neighbour_changes(), IsEmpty());
}

TEST_F(HostViewTest, TellsOfEveryTapFirstAndThenOfThoseThatChange) {
  EXPECT_THAT(view.take_tap_changes(),
              ElementsAre(TapChange{0, TapLink::kUp}, TapChange{1, TapLink::kUp}));
  EXPECT_THAT(view.take_tap_changes(), IsEmpty());

  view.apply(LinkRecord{true, 11, "slc-b", false});
  view.apply(LinkRecord{true, 2, "eth0", false});
  EXPECT_THAT(view.take_tap_changes(), ElementsAre(TapChange{1, TapLink::kGone}));

  view.apply(LinkRecord{false, 12, "slc-b", false});
  EXPECT_THAT(view.take_tap_changes(), ElementsAre(TapChange{1, TapLink::kDown}));
  view.apply(LinkRecord{false, 12, "slc-b", true});
  EXPECT_THAT(view.take_tap_changes(), ElementsAre(TapChange{1, TapLink::kUp}));
}

TEST_F(HostViewTest, TellsOfATapThatWasDownOrAwayBetweenTwoLooks) {
  (void)view.take_tap_changes();

  view.apply(LinkRecord{false, 10, "slc-a", false});
  view.apply(LinkRecord{false, 10, "slc-a", true});
  view.apply(LinkRecord{true, 11, "slc-b", false});
  view.apply(LinkRecord{false, 12, "slc-b", true});

  EXPECT_THAT(view.take_tap_changes(),
              ElementsAre(TapChange{0, TapLink::kUp}, TapChange{1, TapLink::kUp}));
}

TEST_F(HostViewTest, ARenamedTapIsGone) {
  (void)view.take_tap_changes();

  view.apply(LinkRecord{false, 10, "other", true});

  EXPECT_THAT(view.take_tap_changes(), ElementsAre(TapChange{0, TapLink::kGone}));
}

TEST_F(HostViewTest, AnOwnAddressIsTheHosts) {
  view.apply(AddressRecord{false, 2, address("192.0.2.1"), 24, true});

  EXPECT_EQ(view.neighbour(0, address("192.0.2.1")).state, HostNeighbour::State::kOwn);
}

}  // namespace
}  // namespace sluice::kni
