#include <gtest/gtest.h>

#include "test/support/packet_view.h"
#include "test/support/stepped_group.h"
#include "test/support/table_maker.h"

namespace sluice::test {
namespace {

using pipeline::Counter;

class ForwardTest : public ::testing::Test {
 protected:
  ForwardTest() {
    tables_.services["web"] = {.cluster_ip = "10.96.0.1",
                               .vip = "203.0.113.10",
                               .endpoints = {"10.244.1.21:8080", "10.244.2.22:8080"}};
    tables_.services["web6"] = {.cluster_ip = "fd00:96::1",
                                .vip = "fd00:203::10",
                                .endpoints = {"[fd00:244::21]:8080"}};
    tables_.services["dns"] = {.cluster_ip = "10.96.0.2",
                               .vip = "203.0.113.53",
                               .port = 53,
                               .protocol = core::Protocol::kUdp,
                               .endpoints = {"10.244.1.21:5353"}};
    group_.publisher().apply(tables_.make());
  }
  ~ForwardTest() override { EXPECT_EQ(group_.balance_error(), ""); }

  TableMaker tables_;
  SteppedGroup group_;
};

Bytes tcp4(const char* src, const char* dst, std::uint16_t sport, std::uint16_t dport,
           std::uint8_t flags) {
  return PacketBuilder().eth().ipv4(src, dst).tcp(sport, dport, flags).payload(20).build();
}

TEST_F(ForwardTest, SynIsTranslatedToABackendAndTheAnswerBack) {
  const auto out =
      group_.exchange(0, tcp4("198.51.100.7", "203.0.113.10", 40000, 80, kSyn));
  ASSERT_EQ(out.size(), 1u);
  const PacketView syn(out[0].bytes);
  EXPECT_EQ(syn.flow(), "tcp 198.51.100.7:40000 > 10.244.1.21:8080");
  EXPECT_EQ(syn.checksum_error(), "");
  EXPECT_EQ(syn.ttl(), 63);
  EXPECT_EQ(syn.eth_dst(), kPeerMac);

  const auto back =
      group_.exchange(0, tcp4("10.244.1.21", "198.51.100.7", 8080, 40000, kSyn | kAck));
  ASSERT_EQ(back.size(), 1u);
  const PacketView answer(back[0].bytes);
  EXPECT_EQ(answer.flow(), "tcp 203.0.113.10:80 > 198.51.100.7:40000");
  EXPECT_EQ(answer.checksum_error(), "");
  EXPECT_EQ(group_.count(Counter::kConnCreated), 1u);
}

TEST_F(ForwardTest, UdpAndIpv6) {
  const auto udp = group_.exchange(
      0, PacketBuilder().eth().ipv4("198.51.100.7", "203.0.113.53").udp(5000, 53).payload(9).build());
  ASSERT_EQ(udp.size(), 1u);
  EXPECT_EQ(PacketView(udp[0].bytes).flow(), "udp 198.51.100.7:5000 > 10.244.1.21:5353");
  EXPECT_EQ(PacketView(udp[0].bytes).checksum_error(), "");
  const auto six = group_.exchange(
      0, PacketBuilder().eth().ipv6("fd00:198::7", "fd00:203::10").tcp(40000, 80, kSyn).build());
  ASSERT_EQ(six.size(), 1u);
  EXPECT_EQ(PacketView(six[0].bytes).dst(), "fd00:244::21");
  EXPECT_EQ(PacketView(six[0].bytes).checksum_error(), "");
}

}  // namespace
}  // namespace sluice::test
