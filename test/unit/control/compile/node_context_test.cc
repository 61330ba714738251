// Who this node is: NP-2, T-7.
#include "control/compile/node_context.h"

#include <gtest/gtest.h>

#include "test/support/small_cluster.h"

namespace sluice::compile {
namespace {

TEST(NodeContext, NodeObjectCompletesTheConfiguration) {  // NP-2
  NodeConfig config;
  config.node_name = "kestrel";
  model::Node node;
  node.addresses = {{"Hostname", "kestrel"},
                    {"ExternalIP", "198.51.100.1"},
                    {"InternalIP", "192.0.2.11"},
                    {"ExternalIP", "2001:db8::1"}};
  node.labels["topology.kubernetes.io/zone"] = "west";
  const NodeContext c = resolve_node(config, &node, Profile::kNftables);
  EXPECT_EQ(test::ip("192.0.2.11"), c.node_ip4);
  EXPECT_EQ(test::ip("2001:db8::1"), c.node_ip6);
  EXPECT_EQ("west", c.zone);
  config.node_addresses = {test::ip("192.0.2.99")};
  config.zone = "east";
  const NodeContext own = resolve_node(config, &node, Profile::kNftables);
  EXPECT_EQ(test::ip("192.0.2.99"), own.node_ip4);
  EXPECT_EQ("east", own.zone);
}

}  // namespace
}  // namespace sluice::compile
