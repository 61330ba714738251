// Section 13: NP-1..NP-6.
#include "control/compile/node_ports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/small_cluster.h"

namespace sluice::compile {
namespace {

using core::Family;
using test::ip;
using testing::ElementsAre;
using testing::IsEmpty;

class NodePortsTest : public testing::Test {
 protected:
  core::NodePortAddresses resolve(const std::vector<std::string>& configured,
                                  Family family = Family::kIpv4) {
    NodeConfig config;
    config.node_port_addresses = configured;
    Reporter report("node kestrel", lines_);
    return node_port_addresses(node_port_ranges(config, node_, report), family,
                               family == Family::kIpv4 ? local4_ : local6_);
  }
  NodeContext node_ = [] {
    NodeContext n;
    n.node_ip4 = ip("192.0.2.11");
    return n;
  }();
  std::vector<core::IpAddress> local4_ = {ip("10.42.1.1"), ip("192.0.2.11"), ip("192.0.2.111")};
  std::vector<core::IpAddress> local6_ = {ip("2001:db8::11")};
  std::vector<ReportLine> lines_;
};

TEST_F(NodePortsTest, EmptyListMeansPrimary) {  // NP-1
  const auto n = resolve({});
  EXPECT_FALSE(n.match_all);
  EXPECT_THAT(n.addresses, ElementsAre(ip("192.0.2.11")));
}

TEST_F(NodePortsTest, OtherModesLeaveAnEmptyListEmpty) {  // NP-1
  node_.profile = Profile::kIptables;
  EXPECT_TRUE(resolve({}).match_all);
}

TEST_F(NodePortsTest, FamilyWithoutRangeIsMatchedAsAWhole) {  // NP-3
  EXPECT_TRUE(resolve({"primary"}, Family::kIpv6).match_all);
}

TEST_F(NodePortsTest, ZeroPrefixAnywhereMatchesAll) {  // NP-3
  EXPECT_TRUE(resolve({"192.0.2.0/24", "0.0.0.0/0"}).match_all);
}

TEST_F(NodePortsTest, CidrPicksLocalAddresses) {  // NP-4
  EXPECT_THAT(resolve({"192.0.2.0/24"}).addresses,
              ElementsAre(ip("192.0.2.11"), ip("192.0.2.111")));
  EXPECT_THAT(resolve({"203.0.113.0/24"}).addresses, IsEmpty());
}

TEST_F(NodePortsTest, LoopbackNodeAddressIsNoPrimary) {  // NP-2
  node_.node_ip4 = ip("127.0.0.1");
  EXPECT_TRUE(resolve({"primary"}).match_all);
}

TEST_F(NodePortsTest, IptablesServesLoopbackWhereTheListNamesIt) {  // NP-6
  const std::vector<std::string> list = {"192.0.2.11/32", "127.0.0.0/8", "::1/128"};
  EXPECT_THAT(resolve(list).addresses, ElementsAre(ip("192.0.2.11")));
  node_.profile = Profile::kIptables;
  EXPECT_THAT(resolve(list).addresses, ElementsAre(ip("127.0.0.1"), ip("192.0.2.11")));
  EXPECT_THAT(resolve(list, Family::kIpv6).addresses, IsEmpty());
  EXPECT_THAT(resolve({"192.0.2.11/32"}).addresses, ElementsAre(ip("192.0.2.11")));
}

TEST_F(NodePortsTest, GarbageIsReported) {
  EXPECT_THAT(resolve({"primary", "everything"}).addresses, ElementsAre(ip("192.0.2.11")));
  ASSERT_EQ(1U, lines_.size());
  EXPECT_EQ("nodePortAddresses[1]", lines_[0].field);
}

}  // namespace
}  // namespace sluice::compile
