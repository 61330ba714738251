#include "control/compile/allocation.h"

#include <gtest/gtest.h>

namespace sluice::compile {
namespace {

const model::ObjectName kCart{"shop", "cart"};
const model::ObjectName kEdge{"shop", "edge"};

core::IpAddress ip(const char* text) {
  return *core::parse_address(text);
}

/// Always the same place, clamped to the band.
RandomBelow at(std::uint64_t place) {
  return [place](std::uint64_t bound) { return std::min(place, bound - 1); };
}

ClusterIpAllocator cluster(std::vector<std::string> cidrs, RandomBelow random) {
  ClusterIpAllocator out(std::move(random));
  EXPECT_TRUE(out.set_cidrs({{{"kubernetes", std::move(cidrs)}, true, false}}).empty());
  return out;
}

// AL-2
TEST(ClusterIpRange, NetworkAndBroadcastAreNotUsable) {
  const auto v4 = *ClusterIpRange::create(*core::parse_cidr("10.96.0.0/24"));
  EXPECT_FALSE(v4.contains(ip("10.96.0.0")));
  EXPECT_TRUE(v4.contains(ip("10.96.0.1")));
  EXPECT_TRUE(v4.contains(ip("10.96.0.254")));
  EXPECT_FALSE(v4.contains(ip("10.96.0.255")));
  EXPECT_FALSE(v4.contains(ip("10.96.1.1")));
  const auto v6 = *ClusterIpRange::create(*core::parse_cidr("fd00::/120"));
  EXPECT_FALSE(v6.contains(ip("fd00::")));
  EXPECT_TRUE(v6.contains(ip("fd00::ff")));
}

TEST(ClusterIpRange, LargestIpv6RangeWorksToItsEnd) {
  const auto range = *ClusterIpRange::create(*core::parse_cidr("fd00:0:0:1::/64"));
  EXPECT_EQ(range.dynamic_band(),
            (AddressBand{ip("fd00:0:0:1::101"), ip("fd00:0:0:1:ffff:ffff:ffff:ffff")}));
  EXPECT_EQ(range.find_free({ip("fd00:0:0:1:ffff:ffff:ffff:ffff")}, at(UINT64_MAX)),
            ip("fd00:0:0:1::101"));
}

TEST(ClusterIpRange, TinyRangesHaveNoUsableAddress) {
  for (const char* text : {"10.96.0.0/31", "10.96.0.0/32", "fd00::/128"}) {
    const auto range = *ClusterIpRange::create(*core::parse_cidr(text));
    EXPECT_FALSE(range.find_free({}, at(0)).has_value()) << text;
    EXPECT_FALSE(range.dynamic_band().has_value()) << text;
  }
}

// AL-3
TEST(ClusterIpAllocator, DynamicBandFirstFromARandomStartWithWrapAround) {
  auto cluster_ips = cluster({"10.96.0.0/27"}, at(13));
  EXPECT_EQ(*cluster_ips.allocate(core::Family::kIpv4, kCart), ip("10.96.0.30"));
  EXPECT_EQ(*cluster_ips.allocate(core::Family::kIpv4, kCart), ip("10.96.0.17"));
}

TEST(ClusterIpAllocator, StaticBandWhenTheDynamicOneIsFullThenAnError) {
  auto cluster_ips = cluster({"10.96.0.0/27"}, at(0));
  for (int i = 17; i <= 30; ++i) {
    ASSERT_TRUE(cluster_ips.allocate(core::Family::kIpv4, kCart).has_value());
  }
  EXPECT_EQ(*cluster_ips.allocate(core::Family::kIpv4, kCart), ip("10.96.0.1"));
  for (int i = 2; i <= 16; ++i) {
    ASSERT_TRUE(cluster_ips.allocate(core::Family::kIpv4, kCart).has_value());
  }
  EXPECT_FALSE(cluster_ips.allocate(core::Family::kIpv4, kCart).has_value());
}

TEST(ClusterIpAllocator, ExplicitRequestMayTakeAnyUsableAddressOnce) {
  auto cluster_ips = cluster({"10.96.0.0/24", "fd00::/112"}, at(0));
  EXPECT_TRUE(cluster_ips.claim(ip("10.96.0.10"), kCart).has_value());
  EXPECT_TRUE(cluster_ips.claim(ip("fd00::1234"), kCart).has_value());
  const auto twice = cluster_ips.claim(ip("10.96.0.10"), kEdge);
  ASSERT_FALSE(twice.has_value());
  EXPECT_EQ(twice.error().message, "10.96.0.10 belongs to shop/cart already");
  EXPECT_FALSE(cluster_ips.claim(ip("10.97.0.1"), kEdge).has_value());
  cluster_ips.release(ip("10.96.0.10"));
  EXPECT_TRUE(cluster_ips.claim(ip("10.96.0.10"), kEdge).has_value());
}

// AL-1
TEST(ClusterIpAllocator, EveryAllocationHasItsObject) {
  auto cluster_ips = cluster({"fd00::/112"}, at(0));
  ASSERT_TRUE(cluster_ips.claim(ip("fd00::a"), kCart).has_value());
  EXPECT_EQ(cluster_ips.objects(), std::vector{ip_address_object(ip("fd00::a"), kCart)});
  EXPECT_EQ(cluster_ips.objects()[0].labels.at("ipaddress.kubernetes.io/ip-family"), "IPv6");
}

// AL-4
TEST(ClusterIpAllocator, CidrThatIsNotReadyOrGoesHandsOutNothing) {
  ClusterIpAllocator cluster_ips(at(0));
  cluster_ips.set_cidrs({{{"a", {"10.96.0.0/24"}}, false, false},
                         {{"b", {"10.97.0.0/24"}}, true, true},
                         {{"c", {"10.98.0.0/24"}}, true, false}});
  EXPECT_EQ(*cluster_ips.allocate(core::Family::kIpv4, kCart), ip("10.98.0.17"));
  EXPECT_FALSE(cluster_ips.claim(ip("10.96.0.1"), kCart).has_value());
  EXPECT_FALSE(cluster_ips.allocate(core::Family::kIpv6, kCart).has_value());
}

TEST(ClusterIpAllocator, CidrIsInUseWhileAnAddressDependsOnItAlone) {
  auto cluster_ips = cluster({"10.96.0.0/24"}, at(0));
  EXPECT_FALSE(cluster_ips.in_use("kubernetes"));
  ASSERT_TRUE(cluster_ips.allocate(core::Family::kIpv4, kCart).has_value());
  EXPECT_TRUE(cluster_ips.in_use("kubernetes"));
  cluster_ips.set_cidrs(
      {{{"kubernetes", {"10.96.0.0/24"}}, true, true}, {{"wide", {"10.96.0.0/16"}}, true, false}});
  EXPECT_FALSE(cluster_ips.in_use("kubernetes"));
  EXPECT_TRUE(cluster_ips.in_use("wide"));
}

TEST(ClusterIpAllocator, BadCidrIsNamedAndTheOthersGoOn) {
  ClusterIpAllocator cluster_ips(at(0));
  const auto refused = cluster_ips.set_cidrs(
      {{{"bad", {"fd00::/63", "nonsense"}}, true, false}, {{"ok", {"10.96.0.0/24"}}, true, false}});
  EXPECT_EQ(refused.size(), 2u);
  EXPECT_TRUE(cluster_ips.allocate(core::Family::kIpv4, kCart).has_value());
}

// AL-5
TEST(NodePortAllocator, PrefersTheDynamicBand) {
  NodePortAllocator ports({30000, 30016}, at(0));
  EXPECT_EQ(*ports.allocate(core::Protocol::kTcp, kCart), 30016);
  EXPECT_EQ(*ports.allocate(core::Protocol::kTcp, kCart), 30000);
}

TEST(NodePortAllocator, SameNumberForOtherProtocolsOfTheSameServiceOnly) {
  NodePortAllocator ports({30000, 32767}, at(0));
  ASSERT_TRUE(ports.claim(30053, core::Protocol::kUdp, kCart).has_value());
  EXPECT_TRUE(ports.claim(30053, core::Protocol::kTcp, kCart).has_value());
  EXPECT_FALSE(ports.claim(30053, core::Protocol::kTcp, kCart).has_value());
  EXPECT_FALSE(ports.claim(30053, core::Protocol::kSctp, kEdge).has_value());
  ports.release(30053, core::Protocol::kUdp);
  EXPECT_FALSE(ports.claim(30053, core::Protocol::kUdp, kEdge).has_value());
  ports.release(30053, core::Protocol::kTcp);
  EXPECT_TRUE(ports.claim(30053, core::Protocol::kUdp, kEdge).has_value());
}

TEST(NodePortAllocator, FullRangeAndForeignNumbersAreErrors) {
  NodePortAllocator ports({30000, 30001}, at(1));
  EXPECT_EQ(*ports.allocate(core::Protocol::kTcp, kCart), 30001);
  EXPECT_EQ(*ports.allocate(core::Protocol::kTcp, kCart), 30000);
  EXPECT_FALSE(ports.allocate(core::Protocol::kTcp, kCart).has_value());
  EXPECT_FALSE(ports.claim(29999, core::Protocol::kTcp, kCart).has_value());
}

TEST(PortRange, ReadsOnlyWholeRanges) {
  EXPECT_EQ(parse_port_range("30000-32767")->offset(), 86u);
  for (const char* text : {"", "30000", "30000-", "-1", "5-4", "0-10", "1-70000", "1-2x"}) {
    EXPECT_FALSE(parse_port_range(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace sluice::compile
