#include "kni/exception/guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/namespace_fixture.h"

namespace sluice::kni {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class GuardTest : public sluice::test::NamespaceTest {
 protected:
  void SetUp() override {
    NamespaceTest::SetUp();
    ASSERT_EQ(run("ip link add gw0 type veth peer name far0 && ip link set gw0 up && "
                  "ip link set far0 up"),
              0);
  }
  static std::string ipv6_disabled() {
    return output("cat /proc/sys/net/ipv6/conf/gw0/disable_ipv6");
  }
  static std::string tables() { return output("nft list ruleset"); }
};

TEST_F(GuardTest, RefusesAnInterfaceThatHoldsAnAddress) {
  ASSERT_EQ(run("ip addr add 10.0.0.1/24 dev gw0 && ip addr add fd00::1/64 dev gw0"), 0);

  const auto guard = InterfaceGuard::hold("gw0", true);

  ASSERT_FALSE(guard);
  EXPECT_EQ(guard.error().message,
            "interface gw0: the kernel has the address 10.0.0.1/24, fd00::1/64 on it; remove it "
            "(ip addr flush dev gw0) and name it under the port's addresses, so that the port's "
            "tap gets it");
  EXPECT_EQ(ipv6_disabled(), "0\n");
  EXPECT_THAT(tables(), IsEmpty());
}

TEST_F(GuardTest, KeepsFramesAndIpv6FromTheKernelWhileItLives) {
  {
    const auto guard = InterfaceGuard::hold("gw0", true);

    ASSERT_TRUE(guard) << guard.error().message;
    EXPECT_EQ(ipv6_disabled(), "1\n");
    EXPECT_THAT(tables(), HasSubstr("hook ingress device \"gw0\" priority -500; policy drop;"));
    EXPECT_THAT(tables(), HasSubstr("flags owner"));
  }

  EXPECT_EQ(ipv6_disabled(), "0\n");
  EXPECT_THAT(tables(), IsEmpty());
}

TEST_F(GuardTest, LeavesFramesToTheKernelWhenNotAskedToDropThem) {
  const auto guard = InterfaceGuard::hold("gw0", false);

  ASSERT_TRUE(guard) << guard.error().message;
  EXPECT_THAT(tables(), IsEmpty());
  EXPECT_EQ(ipv6_disabled(), "1\n");
}

TEST_F(GuardTest, RefusesAnUnknownInterface) {
  const auto guard = InterfaceGuard::hold("nosuchif0", true);

  ASSERT_FALSE(guard);
  EXPECT_EQ(guard.error().message, "interface nosuchif0: no such interface");
}

}  // namespace
}  // namespace sluice::kni
