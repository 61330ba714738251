#include "test/unit/pipeline/fixture.h"

namespace sluice::test {
namespace {

using IcmpTest = PipelineTest;

std::string quoted_flow(const SentFrame& frame) {
  const Bytes inner = PacketView(frame.bytes).inner_frame();
  return PacketView(inner).flow();
}

Bytes error4(const char* router, const std::string& dst, const Bytes& about, std::uint8_t code = 4,
             std::uint32_t rest = 1400) {
  return PacketBuilder().eth().ipv4(router, dst).icmp(3, code, rest).quote(about, 28).build();
}

// F7: a router behind us reports about a packet we translated.
TEST_F(IcmpTest, ErrorAboutTheRequestReachesTheClientInItsOwnView) {
  const std::string backend = establish(40000);
  const Bytes about = tcp4(kClient, backend, 40000, 8080, kAck);
  const auto out = group_.exchange(0, error4("10.244.0.1", kClient, about));
  ASSERT_EQ(flows(out), Flows{"icmp 10.244.0.1 > 198.51.100.7"});
  EXPECT_EQ(quoted_flow(out[0]), "tcp 198.51.100.7:40000 > 203.0.113.10:80");
  EXPECT_EQ(PacketView(out[0].bytes).icmp_rest(), 1400u);
  EXPECT_EQ(count(Counter::kIcmpTranslated), 1u);
  EXPECT_EQ(group_.connections(), 1u);
}

TEST_F(IcmpTest, ErrorOfTheBackendItselfComesFromTheVip) {
  const auto request = group_.exchange(0, udp4(kClient, "203.0.113.53", 5000, 53));
  ASSERT_EQ(request.size(), 1u);
  const auto out = group_.exchange(0, error4(kB1, kClient, request[0].bytes, 3, 0));
  ASSERT_EQ(flows(out), Flows{"icmp 203.0.113.53 > 198.51.100.7"});
  EXPECT_EQ(quoted_flow(out[0]), "udp 198.51.100.7:5000 > 203.0.113.53:53");
}

// The mirror case: an error about the answer, towards the backend.
TEST_F(IcmpTest, ErrorAboutTheAnswerReachesTheBackend) {
  const std::string backend = establish(40000);
  const Bytes about = tcp4(kVip, kClient, 80, 40000, kAck);
  const auto out = group_.exchange(0, error4("198.51.100.1", kVip, about));
  ASSERT_EQ(flows(out), Flows{"icmp 198.51.100.1 > " + backend});
  EXPECT_EQ(quoted_flow(out[0]), "tcp " + backend + ":8080 > 198.51.100.7:40000");
}

TEST_F(IcmpTest, SourceTranslationIsUndoneInTheQuote) {
  tables_.services["web"].masquerade_external = true;
  apply();
  const auto syn = group_.exchange(0, tcp4(kClient, kVip, 40000, 80, kSyn));
  ASSERT_EQ(syn.size(), 1u);
  const auto out = group_.exchange(0, error4("10.244.0.1", "192.0.2.11", syn[0].bytes));
  ASSERT_EQ(flows(out), Flows{"icmp 10.244.0.1 > 198.51.100.7"});
  EXPECT_EQ(quoted_flow(out[0]), "tcp 198.51.100.7:40000 > 203.0.113.10:80");
}

TEST_F(IcmpTest, Ipv6PacketTooBig) {
  const auto syn = group_.exchange(0, tcp6(kClient6, kVip6, 40000, 80, kSyn));
  ASSERT_EQ(syn.size(), 1u);
  const Bytes error = PacketBuilder()
                          .eth()
                          .ipv6("fd00:244::1", kClient6)
                          .icmp(2, 0, 1280)
                          .quote(syn[0].bytes, 600)
                          .build();
  const auto out = group_.exchange(0, error);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(PacketView(out[0].bytes).checksum_error(), "");
  EXPECT_EQ(quoted_flow(out[0]), "tcp [fd00:198::7]:40000 > [fd00:203::10]:80");
  EXPECT_EQ(PacketView(out[0].bytes).icmp_rest(), 1280u);
}

// F36: the first bytes of a later fragment are no ports.
TEST_F(IcmpTest, QuotedLaterFragmentTouchesNoFlow) {
  establish(40000);
  const Bytes about = PacketBuilder()
                          .eth()
                          .ipv4(kClient, kB1)
                          .id(9)
                          .fragment(1480, false)
                          .protocol(6)
                          .payload(32)
                          .build();
  EXPECT_TRUE(group_.exchange(0, error4("10.244.0.1", kClient, about)).empty());
  EXPECT_EQ(count(Counter::kIcmpTranslated), 0u);
}

TEST_F(IcmpTest, ErrorAboutNoFlowOfOursIsTheHosts) {
  const Bytes about = tcp4("192.0.2.11", "198.51.100.99", 50000, 22, kSyn);
  EXPECT_TRUE(group_.exchange(0, error4("198.51.100.1", "192.0.2.11", about)).empty());
  EXPECT_EQ(count(Counter::kHostIcmp), 1u);
}

SteppedGroupConfig four_inverted() {
  SteppedGroupConfig config;
  config.workers = 4;
  config.owner_twist = pipeline::OwnerTwist::kInverted;
  return config;
}
class IcmpHandoverTest : public PipelineTest {
 protected:
  IcmpHandoverTest() : PipelineTest(four_inverted()) {}
};
TEST_F(IcmpHandoverTest, ErrorsFindTheOwnerFromEveryWorker) {
  const std::string backend = establish(40000);
  for (std::size_t w = 0; w < 4; ++w) {
    EXPECT_EQ(sent(w, error4("10.244.0.1", kClient, tcp4(kClient, backend, 40000, 8080, kAck))),
              Flows{"icmp 10.244.0.1 > 198.51.100.7"});
    EXPECT_EQ(sent(w, error4("198.51.100.1", kVip, tcp4(kVip, kClient, 80, 40000, kAck))),
              Flows{"icmp 198.51.100.1 > " + backend});
  }
}

}  // namespace
}  // namespace sluice::test
