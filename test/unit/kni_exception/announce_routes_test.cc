#include "kni/exception/announce_routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/namespace_fixture.h"

namespace sluice::kni {
namespace {

using testing::HasSubstr;
using testing::Not;

core::IpAddress address(const char* text) { return *core::parse_address(text); }

class AnnounceRoutesTest : public sluice::test::NamespaceTest {
 protected:
  void SetUp() override {
    NamespaceTest::SetUp();
    ASSERT_EQ(run("ip tuntap add dev slc-t mode tap && ip link set slc-t up && "
                  "ip addr add 10.0.0.1/24 dev slc-t && "
                  "ip route add default via 10.0.0.254 && "
                  "sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.slc-t.rp_filter=0"),
              0);
  }
  static std::string route_of_incoming(const std::string& to) {
    return output("ip route get " + to + " from 10.0.0.9 iif slc-t 2>&1");
  }
};

// F21: what nobody claims of an announced address must not go back to the router.
TEST_F(AnnounceRoutesTest, RefusesAnnouncedAddressesThatEnterByATap) {
  ASSERT_THAT(route_of_incoming("203.0.113.10"), HasSubstr("via 10.0.0.254"));
  auto routes = AnnounceRoutes::create({"slc-t"});
  ASSERT_TRUE(routes) << routes.error().message;

  ASSERT_TRUE((*routes)->set({address("203.0.113.10"), address("fd00:203::10")}));

  EXPECT_THAT(route_of_incoming("203.0.113.10"), HasSubstr("No route to host"));
  EXPECT_THAT(route_of_incoming("203.0.113.11"), HasSubstr("via 10.0.0.254"));
  EXPECT_THAT(output("ip -6 route show table 20961"), HasSubstr("unreachable fd00:203::10"));
}

TEST_F(AnnounceRoutesTest, LeavesTheHostsOwnPacketsAlone) {
  auto routes = AnnounceRoutes::create({"slc-t"});
  ASSERT_TRUE((*routes)->set({address("203.0.113.10")}));

  EXPECT_THAT(output("ip route get 203.0.113.10"), HasSubstr("via 10.0.0.254"));
}

TEST_F(AnnounceRoutesTest, RemovesWhatIsNoLongerAnnounced) {
  auto routes = AnnounceRoutes::create({"slc-t"});
  ASSERT_TRUE((*routes)->set({address("203.0.113.10"), address("203.0.113.11")}));

  ASSERT_TRUE((*routes)->set({address("203.0.113.11")}));

  EXPECT_THAT(route_of_incoming("203.0.113.10"), HasSubstr("via 10.0.0.254"));
  EXPECT_THAT(route_of_incoming("203.0.113.11"), HasSubstr("No route to host"));
}

TEST_F(AnnounceRoutesTest, LeavesNothingBehindAndClearsLeftovers) {
  ASSERT_EQ(run("ip rule add iif slc-t lookup 20961 priority 20961"), 0);
  {
    auto routes = AnnounceRoutes::create({"slc-t"});
    ASSERT_TRUE((*routes)->set({address("203.0.113.10")}));
    EXPECT_EQ(output("ip rule | grep -c slc-t"), "1\n");
  }

  EXPECT_THAT(output("ip rule; ip -6 rule"), Not(HasSubstr("slc-t")));
  EXPECT_EQ(output("ip route show table 20961 2>/dev/null"), "");
}

}  // namespace
}  // namespace sluice::kni
