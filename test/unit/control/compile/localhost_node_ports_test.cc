// Node ports on loopback in nftables mode (section 13): NP-12.
#include "control/compile/localhost_node_ports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::compile {
namespace {

using core::Family;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(LocalhostNodePorts, TheGateComesFirst) {
  EXPECT_THAT(localhost_proxy_families(false, {"localhost", "127.0.0.0/8"}), IsEmpty());
}

TEST(LocalhostNodePorts, ALoopbackBlockAsksForItsFamily) {
  EXPECT_THAT(localhost_proxy_families(true, {"192.0.2.0/24", "127.0.0.0/8"}),
              ElementsAre(Family::kIpv4));
  EXPECT_THAT(localhost_proxy_families(true, {"::1/128"}), ElementsAre(Family::kIpv6));
  EXPECT_THAT(localhost_proxy_families(true, {"localhost"}),
              ElementsAre(Family::kIpv4, Family::kIpv6));
}

TEST(LocalhostNodePorts, EverythingIsNoWishForLoopback) {
  EXPECT_THAT(localhost_proxy_families(true, {"0.0.0.0/0", "::/0", "all", "primary", "rubbish"}),
              IsEmpty());
}

}  // namespace
}  // namespace sluice::compile
