// What a Service comes to on a node: S-9..S-11 (section 3), refusals of single parts.
#include "control/compile/service_blocks.h"

#include <gtest/gtest.h>

#include "test/support/small_cluster.h"

namespace sluice::compile {
namespace {

class ServiceBlocksTest : public testing::Test {
 protected:
  core::ServicePort block_of(const model::Service& service) {
    ServiceResult result = compile_service(service, {}, node_, &ids_);
    EXPECT_EQ(1U, result.blocks.size());
    return result.blocks.empty() ? core::ServicePort{} : result.blocks[0].block;
  }
  NodeContext node_;
  IdRegistry ids_{IdRegistry::Limits{}};
  model::Service service_ = test::service("cart", "10.43.0.1");
};

TEST_F(ServiceBlocksTest, AClusterIpAloneIsNotExternallyAccessible) {  // S-9, S-10
  const auto b = block_of(service_);
  EXPECT_FALSE(b.externally_accessible);
  EXPECT_TRUE(b.uses_cluster);
  EXPECT_FALSE(b.uses_local);
}

TEST_F(ServiceBlocksTest, ANodePortOrAnExternalAddressMakesItAccessible) {  // S-9
  auto with_port = service_;
  with_port.type = "NodePort";
  with_port.ports[0].node_port = 30080;
  EXPECT_TRUE(block_of(with_port).externally_accessible);
  auto with_address = service_;
  with_address.external_ips = {"203.0.113.1"};
  EXPECT_TRUE(block_of(with_address).externally_accessible);
  node_.allow_external_ips = false;  // before the gate of S-2
  EXPECT_TRUE(block_of(with_address).externally_accessible);
}

TEST_F(ServiceBlocksTest, AnAddressOfTheOtherFamilyDoesNot) {  // S-9
  service_.external_ips = {"2001:db8::1"};
  EXPECT_FALSE(block_of(service_).externally_accessible);
}

TEST_F(ServiceBlocksTest, InternalLocalAloneNeedsNoClusterList) {  // S-10, S-11
  service_.internal_traffic_policy = "Local";
  const auto b = block_of(service_);
  EXPECT_FALSE(b.uses_cluster);
  EXPECT_TRUE(b.uses_local);
}

TEST_F(ServiceBlocksTest, ExternalLocalNeedsBothLists) {  // S-10, S-11
  service_.type = "LoadBalancer";
  service_.external_traffic_policy = "Local";
  service_.load_balancer_ingress = {{"203.0.113.20", "", std::nullopt}};
  const auto b = block_of(service_);
  EXPECT_TRUE(b.uses_cluster);
  EXPECT_TRUE(b.uses_local);
}

}  // namespace
}  // namespace sluice::compile
