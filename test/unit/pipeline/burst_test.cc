// New flows that arrive in one burst: their entries are made together, which nobody must notice.

#include <map>

#include "test/unit/pipeline/fixture.h"

namespace sluice::test {
namespace {

class BurstTest : public PipelineTest {
 protected:
  BurstTest() {
    for (const std::uint16_t sport : {std::uint16_t{40000}, std::uint16_t{40001}}) {
      establish(sport);  // all neighbours are known
    }
    opened_before_ = count(Counter::kConnCreated);
  }
  void arrives(const Bytes& frame) { group_.inject(0, frame); }
  /// One poll. @return what was sent.
  std::vector<SentFrame> poll() {
    group_.step(0);
    return group_.take_sent();
  }
  [[nodiscard]] std::uint64_t opened() const {
    return count(Counter::kConnCreated) - opened_before_;
  }

 private:
  std::uint64_t opened_before_ = 0;
};

TEST_F(BurstTest, EachNewFlowOfABurstIsOpenedOnceAndItsPacketsStayInOrder) {
  constexpr int kFlows = 20;  // more than are made at a time
  for (const std::uint8_t flags : {kSyn, kAck, kAck}) {
    for (int n = 0; n < kFlows; ++n) {
      arrives(tcp4(kClient2, kVip, static_cast<std::uint16_t>(1000 + n), 80, flags));
    }
  }
  std::map<std::uint16_t, std::vector<PacketView>> by_flow;
  const auto out = poll();
  for (const SentFrame& frame : out) {
    const PacketView view(frame.bytes);
    EXPECT_EQ(view.checksum_error(), "");
    by_flow[view.sport()].push_back(view);
  }
  ASSERT_EQ(by_flow.size(), std::size_t{kFlows});
  for (const auto& [sport, packets] : by_flow) {
    ASSERT_EQ(packets.size(), 3u) << sport;
    EXPECT_EQ(packets[0].tcp_flags(), kSyn) << sport;
    EXPECT_EQ(packets[1].dst(), packets[0].dst()) << sport;
    EXPECT_EQ(packets[2].dst(), packets[0].dst()) << sport;
  }
  EXPECT_EQ(opened(), std::uint64_t{kFlows});
}

TEST_F(BurstTest, BothFamiliesInOneBurst) {
  sent(0, tcp6(kClient6, kVip6, 999, 80, kSyn));
  group_.take_sent();
  for (int n = 0; n < 20; ++n) {
    const auto sport = static_cast<std::uint16_t>(1000 + n);
    arrives(tcp4(kClient2, kVip, sport, 80, kSyn));
    arrives(tcp6(kClient6, kVip6, sport, 80, kSyn));
    arrives(tcp6(kClient6, kVip6, sport, 80, kAck));
  }
  EXPECT_EQ(poll().size(), 60u);
  EXPECT_EQ(opened(), 41u);
}

TEST_F(BurstTest, AnswerInTheSameBurstIsTranslated) {
  sent(0, udp4(kClient, "203.0.113.53", 5000, 53));
  arrives(udp4(kClient, "203.0.113.53", 5001, 53));
  arrives(udp4(kB1, kClient, 5353, 5001));
  EXPECT_EQ(flows(poll()), (Flows{"udp 198.51.100.7:5001 > 10.244.1.21:5353",
                                  "udp 203.0.113.53:53 > 198.51.100.7:5001"}));
  EXPECT_TRUE(group_.take_to_host().empty());
}

TEST_F(BurstTest, TwoFlowsOfABurstWithOneReplyKeyAreBothOpened) {
  tables_.services["dns2"] = {.cluster_ip = "10.96.0.3",
                              .vip = "203.0.113.54",
                              .port = 53,
                              .protocol = core::Protocol::kUdp,
                              .endpoints = {"10.244.1.21:5353", "10.244.2.22:5353"}};
  apply();
  arrives(udp4(kClient, "203.0.113.53", 5000, 53));
  arrives(udp4(kClient, "203.0.113.54", 5000, 53));
  EXPECT_EQ(flows(poll()), (Flows{"udp 198.51.100.7:5000 > 10.244.1.21:5353",
                                  "udp 198.51.100.7:5000 > 10.244.2.22:5353"}));
}

// A resolver asks for A and AAAA from one socket at once.
TEST_F(BurstTest, SecondPacketOfANewFlowTakesNoTurnOfItsScheduler) {
  tables_.services["dns"].scheduler = core::SchedulerKind::kRr;
  tables_.services["dns"].endpoints = {"10.244.1.21:5353", "10.244.2.22:5353"};
  apply();
  std::map<std::string, int> shares;
  for (std::uint16_t sport = 5000; sport < 5010; ++sport) {
    arrives(udp4(kClient, "203.0.113.53", sport, 53));
    arrives(udp4(kClient, "203.0.113.53", sport, 53));
    const auto out = poll();
    ASSERT_EQ(out.size(), 2u);
    EXPECT_EQ(PacketView(out[0].bytes).dst(), PacketView(out[1].bytes).dst());
    ++shares[PacketView(out[0].bytes).dst()];
  }
  EXPECT_EQ(shares[kB1], 5);
  EXPECT_EQ(shares[kB2], 5);
  EXPECT_EQ(opened(), 10u);
}

TEST_F(BurstTest, FlowsWithAndWithoutATranslatedSourceInOneBurst) {
  tables_.services["web"].masquerade_external = true;
  apply();
  for (std::uint16_t n = 0; n < 10; ++n) {
    arrives(tcp4(kClient2, kVip, static_cast<std::uint16_t>(1000 + n), 80, kSyn));
    arrives(udp4(kClient, "203.0.113.53", static_cast<std::uint16_t>(5000 + n), 53));
    arrives(tcp4(kClient2, kVip, static_cast<std::uint16_t>(1000 + n), 80, kAck));
  }
  std::map<std::string, int> sources;
  std::map<std::uint16_t, int> ports;
  const auto out = poll();
  for (const SentFrame& frame : out) {
    const PacketView view(frame.bytes);
    EXPECT_EQ(view.checksum_error(), "");
    ++sources[view.src()];
    ++ports[view.sport()];
  }
  EXPECT_EQ(out.size(), 30u);
  EXPECT_EQ(sources, (std::map<std::string, int>{{"192.0.2.11", 20}, {kClient, 10}}));
  EXPECT_EQ(ports.size(), 20u);  // each flow has its own
  EXPECT_EQ(opened(), 20u);
}

// What a scheduler counts is counted before the next flow of the burst is scheduled.
TEST_F(BurstTest, LeastConnectionSpreadsABurst) {
  tables_.services["web"].scheduler = core::SchedulerKind::kLc;
  apply();
  for (int n = 0; n < 40; ++n) {
    arrives(tcp4(kClient2, kVip, static_cast<std::uint16_t>(1000 + n), 80, kSyn));
  }
  std::map<std::string, int> shares;
  for (const SentFrame& frame : poll()) {
    ++shares[PacketView(frame.bytes).dst()];
  }
  EXPECT_EQ(shares[kB1], 20);
  EXPECT_EQ(shares[kB2], 20);
}

// What is asked for at once differs by core; what becomes of the packets does not.
class MemoryPaceTest : public PipelineTest,
                       public ::testing::WithParamInterface<pipeline::MemoryPace> {
 protected:
  MemoryPaceTest() : PipelineTest(config()) {}

 private:
  static SteppedGroupConfig config() {
    SteppedGroupConfig config;
    config.pace = GetParam();
    return config;
  }
};

TEST_P(MemoryPaceTest, FullBurstsOfKnownFlowsAreTranslatedWhateverIsAskedForAhead) {
  constexpr std::uint16_t kFlows = pipeline::kBurst;
  for (const bool v6 : {false, true}) {
    const auto packet = [&](std::uint16_t n, std::uint8_t flags) {
      return v6 ? tcp6(kClient6, kVip6, n, 80, flags) : tcp4(kClient, kVip, n, 80, flags);
    };
    std::map<std::uint16_t, std::string> flow_of;
    for (std::uint16_t n = 1; n <= kFlows; ++n) {
      const auto opened = group_.exchange(0, packet(n, kSyn));
      ASSERT_EQ(opened.size(), 1u);
      const std::string backend = PacketView(opened[0].bytes).dst();
      sent(0, v6 ? tcp6(backend, kClient6, 8080, n, kSyn | kAck)
                 : tcp4(backend, kClient, 8080, n, kSyn | kAck));
      const Flows established = sent(0, packet(n, kAck));
      ASSERT_EQ(established.size(), 1u);
      flow_of[n] = established[0];
    }
    for (std::uint16_t n = 1; n <= kFlows; ++n) {
      group_.inject(0, packet(n, kAck));
    }
    group_.step(0);
    const Flows out = flows(group_.take_sent());
    ASSERT_EQ(out.size(), std::size_t{kFlows});
    for (std::uint16_t n = 1; n <= kFlows; ++n) {
      EXPECT_EQ(out[n - 1u], flow_of[n]);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(
    Paces, MemoryPaceTest,
    ::testing::Values(pipeline::MemoryPace{0, 64}, pipeline::MemoryPace{1, 64},
                      pipeline::MemoryPace{20, 64}, pipeline::MemoryPace{63, 64},
                      pipeline::MemoryPace{64, 63}, pipeline::MemoryPace{128, 32},
                      pipeline::MemoryPace{128, 7}, pipeline::MemoryPace{20, 1}));

}  // namespace
}  // namespace sluice::test
