#include "kni/exception/mirror.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/namespace_fixture.h"

namespace sluice::kni {
namespace {

core::IpAddress address(const char* text) {
  return *core::parse_address(text);
}

class MirrorTest : public sluice::test::NamespaceTest {
 protected:
  void SetUp() override {
    NamespaceTest::SetUp();
    // Two ends of a veth stand for the tap and for what is behind the port.
    ASSERT_EQ(run("ip link add slc-t type veth peer name far0 && ip link set slc-t up && "
                  "ip link set far0 up && ip addr add 10.0.0.1/24 dev slc-t"),
              0);
  }
  void open(const WishBook::Limits& limits = {}) {
    MirrorEvents events;
    events.addresses = [this](const std::vector<HostAddress>& a) { addresses = a; };
    events.routes = [this](const std::vector<HostRoute>& r) { routes = r; };
    events.neighbour = [this](const HostNeighbour& n) { neighbours[n.address] = n; };
    events.tap = [this](const TapChange& change) { taps.push_back(change.link); };
    events.wishes = [this](std::vector<NeighbourWish>& out) { out.swap(wishes); };
    events.forgotten = [this](const NeighbourWish& wish) { forgotten.push_back(wish.address); };
    mirror = std::make_unique<Mirror>(std::vector<std::string>{"slc-t"}, std::move(events), limits);
    const auto opened = mirror->open();
    ASSERT_TRUE(opened) << opened.error().message;
  }
  /// Steps until the condition holds; the kernel's news take their time. False after 5 s.
  template <class Condition>
  bool step_until(const Condition& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (!condition() && std::chrono::steady_clock::now() < end) {
      mirror->step();
      std::this_thread::yield();
    }
    return condition();
  }
  [[nodiscard]] bool has_route(const char* prefix, const char* gateway) const {
    for (const HostRoute& route : routes) {
      if (core::to_string(route.prefix) == prefix && route.gateway == address(gateway)) {
        return route.port == 0u;
      }
    }
    return false;
  }

  std::vector<HostAddress> addresses;
  std::vector<HostRoute> routes;
  std::map<core::IpAddress, HostNeighbour> neighbours;
  std::vector<NeighbourWish> wishes;
  std::vector<core::IpAddress> forgotten;
  std::vector<TapLink> taps;
  std::unique_ptr<Mirror> mirror;
};

TEST_F(MirrorTest, ReportsThePresentStateAtTheStart) {
  ASSERT_EQ(run("ip route add 10.5.0.0/16 via 10.0.0.254"), 0);

  open();

  EXPECT_TRUE(has_route("10.5.0.0/16", "10.0.0.254"));
  EXPECT_THAT(addresses, testing::Contains(HostAddress{address("10.0.0.1"), "slc-t", 24, 0}));
}

TEST_F(MirrorTest, FollowsRoutesOfBothFamilies) {
  open();

  ASSERT_EQ(run("ip addr add fd00::1/64 dev slc-t nodad && "
                "ip -6 route add fd05::/48 via fd00::fe && ip route add 10.6.0.0/16 via 10.0.0.9"),
            0);

  EXPECT_TRUE(step_until(
      [&] { return has_route("fd05::/48", "fd00::fe") && has_route("10.6.0.0/16", "10.0.0.9"); }));
}

TEST_F(MirrorTest, FollowsRoutesThatGoWithALink) {
  ASSERT_EQ(run("ip route add 10.5.0.0/16 via 10.0.0.254"), 0);
  open();

  ASSERT_EQ(run("ip link set slc-t down"), 0);

  EXPECT_TRUE(step_until([&] { return !has_route("10.5.0.0/16", "10.0.0.254"); }));
}

TEST_F(MirrorTest, TellsOfATapThatIsDeletedAndMadeAgain) {
  open();
  ASSERT_EQ(taps, std::vector{TapLink::kUp});

  ASSERT_EQ(run("ip link del slc-t"), 0);
  ASSERT_TRUE(step_until([&] { return taps.back() == TapLink::kGone; }));
  ASSERT_EQ(run("ip tuntap add dev slc-t mode tap && ip link set slc-t up"), 0);

  EXPECT_TRUE(step_until([&] { return taps.back() == TapLink::kUp; }));
}

TEST_F(MirrorTest, FollowsAddressesThatComeAndGo) {
  open();
  const auto has = [&](const char* text) {
    return std::any_of(addresses.begin(), addresses.end(),
                       [&](const HostAddress& a) { return a.address == address(text); });
  };

  ASSERT_EQ(run("ip addr add 10.0.7.1/24 dev slc-t"), 0);
  EXPECT_TRUE(step_until([&] { return has("10.0.7.1"); }));
  ASSERT_EQ(run("ip addr del 10.0.7.1/24 dev slc-t"), 0);
  EXPECT_TRUE(step_until([&] { return !has("10.0.7.1"); }));
}

TEST_F(MirrorTest, AWishMakesTheKernelResolveANeighbour) {
  open();

  wishes.push_back({0, address("10.0.0.2")});
  ASSERT_TRUE(step_until([&] { return neighbours.count(address("10.0.0.2")) != 0; }));
  EXPECT_EQ(neighbours[address("10.0.0.2")].state, HostNeighbour::State::kUnresolved);
  EXPECT_THAT(output("ip neigh show 10.0.0.2"), testing::HasSubstr("INCOMPLETE"));

  ASSERT_EQ(run("ip neigh replace 10.0.0.2 lladdr 02:00:00:00:00:77 nud reachable dev slc-t"), 0);
  ASSERT_TRUE(step_until(
      [&] { return neighbours[address("10.0.0.2")].state == HostNeighbour::State::kReachable; }));
  EXPECT_EQ(core::to_string(neighbours[address("10.0.0.2")].mac), "02:00:00:00:00:77");
}

// The kernel takes a question for a permanent neighbour as leave to forget its MAC.
TEST_F(MirrorTest, AWishLeavesAPermanentNeighbourAsItIs) {
  ASSERT_EQ(run("ip neigh add 10.0.0.2 lladdr 02:00:00:00:00:77 nud permanent dev slc-t"), 0);
  open();

  wishes.push_back({0, address("10.0.0.2"), true});
  ASSERT_TRUE(step_until([&] { return neighbours.count(address("10.0.0.2")) != 0; }));
  mirror->step();

  EXPECT_EQ(neighbours[address("10.0.0.2")].state, HostNeighbour::State::kPermanent);
  EXPECT_THAT(output("ip neigh show 10.0.0.2"), testing::HasSubstr("PERMANENT"));
}

TEST_F(MirrorTest, AFailedNeighbourIsReported) {
  ASSERT_EQ(run("echo 10 > /proc/sys/net/ipv4/neigh/slc-t/retrans_time_ms"), 0);
  open();

  wishes.push_back({0, address("10.0.0.3")});

  EXPECT_TRUE(step_until(
      [&] { return neighbours[address("10.0.0.3")].state == HostNeighbour::State::kFailed; }));
}

// Else a flood from made-up addresses would be followed by questions for them for ever.
TEST_F(MirrorTest, ANeighbourThatDoesNotAnswerIsForgotten) {
  WishBook::Limits limits;
  limits.patience = std::chrono::seconds(1);
  open(limits);

  wishes.push_back({0, address("10.0.0.2")});
  wishes.push_back({0, address("10.0.0.3")});
  ASSERT_TRUE(step_until([&] { return neighbours.count(address("10.0.0.3")) != 0; }));
  ASSERT_EQ(run("ip neigh replace 10.0.0.2 lladdr 02:00:00:00:00:77 nud reachable dev slc-t"), 0);

  EXPECT_TRUE(step_until([&] { return !forgotten.empty(); }));
  EXPECT_THAT(forgotten, testing::ElementsAre(address("10.0.0.3")));
  EXPECT_THAT(output("ip neigh show"), testing::Not(testing::HasSubstr("10.0.0.3")));
  EXPECT_THAT(output("ip neigh show"), testing::HasSubstr("10.0.0.2"));
}

// The kernel has room for 1,024 neighbours: once they were all made up, and no other was resolved.
TEST_F(MirrorTest, ANewNeighbourIsResolvedDuringAFloodOfOthersThatDoNotExist) {
  ASSERT_EQ(run("ip addr add 10.2.0.1/16 dev slc-t"), 0);
  WishBook::Limits limits;
  limits.other_rate = 40'000;  // of the test, so that it need not take seconds
  limits.open = 64;
  open(limits);
  for (int n = 0; n < 3000; ++n) {
    wishes.push_back({0, core::IpAddress(core::Be32::from_host(0x0a020100u + n))});
    if (n % 30 == 0) {
      mirror->step();
    }
  }

  wishes.push_back({0, address("10.0.0.2"), true});
  ASSERT_TRUE(step_until([&] { return neighbours.count(address("10.0.0.2")) != 0; }));
  EXPECT_THAT(output("ip neigh show 10.0.0.2"), testing::HasSubstr("INCOMPLETE"));
  ASSERT_EQ(run("ip neigh replace 10.0.0.2 lladdr 02:00:00:00:00:77 nud reachable dev slc-t"), 0);

  EXPECT_TRUE(step_until(
      [&] { return neighbours[address("10.0.0.2")].state == HostNeighbour::State::kReachable; }));
  EXPECT_GT(forgotten.size(), 200u);
  const std::string present = output("ip neigh show");
  EXPECT_LE(std::count(present.begin(), present.end(), '\n'), 66);
}

TEST_F(MirrorTest, AWishForAnOwnAddressIsTheHosts) {
  open();

  wishes.push_back({0, address("10.0.0.1")});

  EXPECT_TRUE(step_until(
      [&] { return neighbours[address("10.0.0.1")].state == HostNeighbour::State::kOwn; }));
}

TEST_F(MirrorTest, ReadsEverythingAgainWhenEventsWereLost) {
  open();
  // Nobody reads while more events come than any receive buffer holds.
  ASSERT_EQ(run("for i in $(seq 0 255); do for j in $(seq 0 255); do "
                "echo neigh replace 10.1.$i.$j lladdr 02:00:00:00:00:01 dev slc-t; done; done | "
                "ip -batch - >/dev/null 2>&1; true"),
            0);
  ASSERT_EQ(run("ip route add 10.8.0.0/16 via 10.0.0.8"), 0);

  EXPECT_TRUE(step_until([&] { return has_route("10.8.0.0/16", "10.0.0.8"); }));
}

}  // namespace
}  // namespace sluice::kni
