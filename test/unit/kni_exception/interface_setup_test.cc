#include "kni/exception/interface_setup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/namespace_fixture.h"

namespace sluice::kni {
namespace {

using testing::HasSubstr;

core::IpAddress address(const char* text) { return *core::parse_address(text); }

class InterfaceSetupTest : public sluice::test::NamespaceTest {
 protected:
  void SetUp() override {
    NamespaceTest::SetUp();
    ASSERT_EQ(run("ip tuntap add dev slc-t mode tap"), 0);
  }
};

TEST_F(InterfaceSetupTest, GivesAddressesAndRoutesOfBothFamilies) {
  InterfaceSetup setup;
  setup.addresses = {{address("10.0.0.1"), 24}, {address("fd00::1"), 64}};
  setup.routes = {{*core::parse_cidr("0.0.0.0/0"), address("10.0.0.254")},
                  {*core::parse_cidr("fd01::/48"), address("fd00::fe")}};

  const auto done = set_up_interface("slc-t", setup);

  ASSERT_TRUE(done) << done.error().message;
  EXPECT_THAT(output("ip -br addr show dev slc-t"), HasSubstr("10.0.0.1/24"));
  EXPECT_THAT(output("ip -br addr show dev slc-t"), HasSubstr("fd00::1/64"));
  EXPECT_THAT(output("ip route"), HasSubstr("default via 10.0.0.254 dev slc-t"));
  EXPECT_THAT(output("ip -6 route"), HasSubstr("fd01::/48 via fd00::fe dev slc-t"));
}

TEST_F(InterfaceSetupTest, NamesTheRouteTheKernelRefuses) {
  InterfaceSetup setup;
  setup.routes = {{*core::parse_cidr("0.0.0.0/0"), address("10.9.0.254")}};

  const auto done = set_up_interface("slc-t", setup);

  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message,
            "slc-t: route to 0.0.0.0/0 via 10.9.0.254: Network is unreachable");
}

TEST_F(InterfaceSetupTest, RefusesAnUnknownInterface) {
  EXPECT_FALSE(set_up_interface("nosuchif0", {}));
}

TEST(MissingPrivilege, IsNoneForRoot) { EXPECT_EQ(missing_privilege(), ""); }

}  // namespace
}  // namespace sluice::kni
