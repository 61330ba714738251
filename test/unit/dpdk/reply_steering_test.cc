#include "dataplane/dpdk/reply_steering.h"

#include <gtest/gtest.h>

#include "dataplane/core/net/toeplitz.h"
#include "dataplane/pipeline/owner.h"
#include "test/support/eal_environment.h"

namespace sluice::dpdk {
namespace {

const auto* const kEal = testing::AddGlobalTestEnvironment(new test::EalEnvironment(64));

template <class Key>
std::uint32_t hash_of(const core::Toeplitz& toeplitz, const Key& reply) {
  std::vector<std::uint8_t> input(2 * sizeof reply.src + 4);
  reply.src.store(input.data());
  reply.dst.store(input.data() + sizeof reply.src);
  reply.sport.store(input.data() + 2 * sizeof reply.src);
  reply.dport.store(input.data() + 2 * sizeof reply.src + 2);
  return toeplitz.hash(std::span<const std::uint8_t>(input));
}

template <class Key>
void expect_steered(Key reply) {
  const auto steering = ReplySteering::create(pipeline::default_rss_key());
  ASSERT_TRUE(steering) << steering.error().message;
  const core::Toeplitz toeplitz((*steering)->key());  // what the NIC computes, by other code
  reply.sport = core::Be16::from_host(8080);
  for (std::uint32_t n = 0; n < 500; ++n) {
    const auto port = static_cast<std::uint16_t>(1024 + n * 127);
    const auto wanted = static_cast<std::uint16_t>(n % 128);
    reply.dport = core::Be16::from_host(port);
    const std::uint16_t adjusted = (*steering)->adjust(reply, wanted);
    EXPECT_EQ(adjusted / 512, port / 512) << "another worker's block";
    reply.dport = core::Be16::from_host(adjusted);
    EXPECT_EQ(hash_of(toeplitz, reply) % 512, wanted);
  }
}

TEST(ReplySteering, AnIpv4ReplyHashesToTheWantedQueueAndThePortStaysInItsBlock) {
  expect_steered(core::FlowKey4{core::parse_address("10.244.1.21")->v4(),
                                core::parse_address("192.0.2.200")->v4(), {}, {}, 6, {}});
}

TEST(ReplySteering, AnIpv6ReplyDoesSoToo) {
  expect_steered(core::FlowKey6{core::parse_address("fd00:244::21")->v6(),
                                core::parse_address("fd00:2::200")->v6(), {}, {}, 6, {}});
}

}  // namespace
}  // namespace sluice::dpdk
