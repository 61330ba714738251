#include "dataplane/core/conn/flow_hash.h"

#include <array>
#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "dataplane/core/net/flow_key.h"

namespace sluice::core {
namespace {

template <class F>
class FlowHashTest : public testing::Test {
 public:
  using Key = typename F::Key;

 protected:
  static constexpr std::size_t kAddresses = 2 * sizeof(typename F::Address);

  Key random_key() {
    std::array<std::uint8_t, kAddresses> bytes;
    for (std::uint8_t& byte : bytes) {
      byte = static_cast<std::uint8_t>(random_());
    }
    typename F::Address src, dst;
    std::memcpy(&src, bytes.data(), sizeof src);
    std::memcpy(&dst, bytes.data() + sizeof src, sizeof dst);
    return Key::of(src, dst, Be16::from_host(static_cast<std::uint16_t>(random_())),
                   Be16::from_host(static_cast<std::uint16_t>(random_())), 6);
  }
  std::mt19937_64 random_{7};
};
using Families = testing::Types<Ipv4, Ipv6>;
TYPED_TEST_SUITE(FlowHashTest, Families);

TYPED_TEST(FlowHashTest, WhatIsMadeOfTheSeedOnceGivesTheHashOfThatSeed) {
  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}, this->random_()}) {
    const FlowHash<typename TestFixture::Key> hash(seed);
    for (int n = 0; n < 1000; ++n) {
      const auto key = this->random_key();
      ASSERT_EQ(hash(key), flow_hash(key, seed));
    }
  }
}

TYPED_TEST(FlowHashTest, EveryPartOfAKeyCounts) {
  const FlowHash<typename TestFixture::Key> hash(3);
  const auto key = this->random_key();
  constexpr std::size_t kBytes = TestFixture::kAddresses + 5;  // ports and protocol
  for (std::size_t bit = 0; bit < kBytes * 8; ++bit) {
    auto other = key;
    reinterpret_cast<std::uint8_t*>(&other)[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
    EXPECT_NE(hash(other), hash(key)) << "bit " << bit;
  }
}

}  // namespace
}  // namespace sluice::core
