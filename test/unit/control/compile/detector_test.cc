// Section 11.
#include "control/compile/detector.h"

#include <gtest/gtest.h>

#include "test/support/small_cluster.h"

namespace sluice::compile {
namespace {

using core::Family;
using Detect = NodeConfig::DetectLocal;
using Kind = core::LocalDetector::Kind;

TEST(Detector, ClusterCidrUsesTheFirstOfEachFamily) {
  NodeConfig c;
  c.cluster_cidrs = {test::cidr("10.42.0.0/16"), test::cidr("10.99.0.0/16"),
                     test::cidr("fd42::/16")};
  EXPECT_EQ(test::cidr("10.42.0.0/16"), resolve_detector(c, nullptr, Family::kIpv4).cidr);
  EXPECT_EQ(test::cidr("fd42::/16"), resolve_detector(c, nullptr, Family::kIpv6).cidr);
}

TEST(Detector, FamilyWithoutCidrHasNoDetector) {
  NodeConfig c;
  c.cluster_cidrs = {test::cidr("10.42.0.0/16")};
  EXPECT_EQ(Kind::kNone, resolve_detector(c, nullptr, Family::kIpv6).kind);
}

TEST(Detector, NodeCidrComesFromTheNodeObject) {
  NodeConfig c;
  c.detect_local = Detect::kNodeCidr;
  model::Node node;
  node.pod_cidrs = {"10.42.1.0/24"};
  EXPECT_EQ(test::cidr("10.42.1.0/24"), resolve_detector(c, &node, Family::kIpv4).cidr);
  EXPECT_EQ(Kind::kNone, resolve_detector(c, nullptr, Family::kIpv4).kind);
}

TEST(Detector, InterfacesServeBothFamilies) {
  NodeConfig c;
  c.detect_local = Detect::kBridgeInterface;
  c.bridge_interface = "cni0";
  EXPECT_EQ("cni0", resolve_detector(c, nullptr, Family::kIpv6).interface);
  c.detect_local = Detect::kInterfaceNamePrefix;
  c.interface_name_prefix = "veth";
  EXPECT_EQ(Kind::kInterfacePrefix, resolve_detector(c, nullptr, Family::kIpv4).kind);
}

}  // namespace
}  // namespace sluice::compile
