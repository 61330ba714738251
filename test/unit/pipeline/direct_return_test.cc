// Mode dr: only the Ethernet addresses change, answers go past the gateway.

#include "dataplane/core/conn/states.h"
#include "dataplane/core/fwd/table_builder.h"
#include "test/unit/pipeline/fixture.h"

namespace sluice::test {
namespace {

using core::ForwardingMode;

class DirectReturnTest : public PipelineTest {
 protected:
  explicit DirectReturnTest(const SteppedGroupConfig& config = {}) : PipelineTest(config) {
    tables_.services["web"].mode = ForwardingMode::kDr;
    tables_.services["web"].endpoints = {"10.244.1.21:80", "10.244.2.22:80"};
    tables_.services["web6"].mode = ForwardingMode::kDr;
    tables_.services["web6"].endpoints = {"[fd00:244::21]:80"};
    tables_.services["dns"].mode = ForwardingMode::kDr;
    tables_.services["dns"].endpoints = {"10.244.1.21:53"};
    apply();
    std::uint8_t last = 0x21;
    for (const char* backend : {kB1, kB2, kB6}) {
      core::MacAddress mac{{2, 0, 0, 0, 0, last++}};
      auto& hops = group_.hops();
      hops.write(hops.add(pipeline::PortIndex{0}, *core::parse_address(backend)),
                 pipeline::NextHopWord::make(mac, pipeline::PortIndex{0},
                                             pipeline::NeighbourState::kReachable));
    }
  }
  /// The frame that goes out for `frame`, or an empty one.
  Bytes through(const Bytes& frame, std::size_t worker = 0) {
    const auto out = group_.exchange(worker, frame);
    return out.size() == 1 ? out[0].bytes : Bytes{};
  }
  static Bytes behind_ethernet(const Bytes& frame) {
    return frame.size() < 14 ? Bytes{} : Bytes(frame.begin() + 12, frame.end());
  }
  core::ConnState state_of(std::uint16_t client_port) {
    core::ConnState state = core::ConnState::kFree;
    (void)group_.dump_connections({}, [&](const pipeline::ConnectionRow& row) {
      state = row.flow.sport == client_port ? row.state : state;
      return true;
    });
    return state;
  }
};

TEST_F(DirectReturnTest, OnlyTheEthernetAddressesChange) {
  for (const Bytes& frame : {tcp4(kClient, kVip, 40000, 80, kSyn), tcp4(kClient, kVip, 40000, 80, kAck),
                             tcp6(kClient6, kVip6, 40000, 80, kSyn),
                             udp4(kClient, "203.0.113.53", 5000, 53)}) {
    const Bytes out = through(frame);
    ASSERT_FALSE(out.empty());
    EXPECT_EQ(behind_ethernet(out), behind_ethernet(frame));
    EXPECT_EQ(PacketView(out).eth_src(), kOwnMac);
    EXPECT_EQ(PacketView(out).eth_dst().substr(0, 15), "02:00:00:00:00:");
    EXPECT_GE(PacketView(out).eth_dst(), "02:00:00:00:00:21");
  }
}

TEST_F(DirectReturnTest, AFlowKeepsItsBackendAndFlowsAreSpread) {
  const std::string first = PacketView(through(tcp4(kClient, kVip, 40000, 80, kSyn))).eth_dst();
  const std::string second = PacketView(through(tcp4(kClient, kVip, 40001, 80, kSyn))).eth_dst();
  EXPECT_NE(first, second);  // rr
  EXPECT_EQ(PacketView(through(tcp4(kClient, kVip, 40000, 80, kAck))).eth_dst(), first);
  EXPECT_EQ(PacketView(through(tcp4(kClient, kVip, 40001, 80, kAck))).eth_dst(), second);
}

// As a switch would: the last hop is the backend's, not ours.
TEST_F(DirectReturnTest, TheTtlIsLeftAlone) {
  const Bytes syn = through(tcp4(kClient, kVip, 40000, 80, kSyn, 1));
  EXPECT_EQ(PacketView(syn).ttl(), 1);
  EXPECT_EQ(PacketView(through(tcp4(kClient, kVip, 40000, 80, kAck, 1))).ttl(), 1);
  EXPECT_EQ(count(Counter::kTtlAnswered), 0u);
}

TEST_F(DirectReturnTest, TheStateFollowsTheClientAlone) {
  through(tcp4(kClient, kVip, 40000, 80, kSyn));
  EXPECT_EQ(state_of(40000), core::ConnState::kSynSent);
  through(tcp4(kClient, kVip, 40000, 80, kAck));
  EXPECT_EQ(state_of(40000), core::ConnState::kEstablished);
  group_.run_ms(200'000, 5000);
  EXPECT_EQ(state_of(40000), core::ConnState::kEstablished);
  through(tcp4(kClient, kVip, 40000, 80, kFin | kAck));
  EXPECT_EQ(state_of(40000), core::ConnState::kFinWait);
  through(tcp4(kClient, kVip, 40000, 80, kAck));
  EXPECT_EQ(state_of(40000), core::ConnState::kFinWait);
  group_.run_ms(130'000, 1000);
  EXPECT_EQ(group_.connections(), 0u);
  EXPECT_EQ(group_.counts().active(tables_.id("web", "10.244.1.21:80")), 0u);
}

TEST_F(DirectReturnTest, AResetOfTheClientEndsAndASynAfterFinStartsAnew) {
  through(tcp4(kClient, kVip, 40000, 80, kSyn));
  through(tcp4(kClient, kVip, 40000, 80, kAck));
  through(tcp4(kClient, kVip, 40000, 80, kRst));
  EXPECT_EQ(state_of(40000), core::ConnState::kClosed);
  through(tcp4(kClient, kVip, 40001, 80, kSyn));
  through(tcp4(kClient, kVip, 40001, 80, kAck));
  through(tcp4(kClient, kVip, 40001, 80, kFin | kAck));
  EXPECT_FALSE(through(tcp4(kClient, kVip, 40001, 80, kSyn)).empty());
  EXPECT_EQ(state_of(40001), core::ConnState::kSynSent);
  EXPECT_EQ(count(Counter::kConnReused), 1u);
}

TEST_F(DirectReturnTest, UdpIsAStreamFromTheSecondDatagramOn) {
  through(udp4(kClient, "203.0.113.53", 5000, 53));
  EXPECT_EQ(state_of(5000), core::ConnState::kUdpNew);  // F5: one datagram is no peer yet
  through(udp4(kClient, "203.0.113.53", 5000, 53));
  EXPECT_EQ(state_of(5000), core::ConnState::kUdpStream);
}

TEST_F(DirectReturnTest, TheSourceIsKeptWhateverWouldTranslateItElsewhere) {
  // From the node itself (P-5), and from an endpoint of this node to itself (hairpin, F47).
  tables_.services["web"].local = {"10.244.1.21:80"};
  apply();
  for (const char* source : {"192.0.2.11", kB1}) {
    for (std::uint16_t n = 0; n < 2; ++n) {
      const Bytes frame = tcp4(source, kVip, static_cast<std::uint16_t>(40000 + n), 80, kSyn);
      EXPECT_EQ(behind_ethernet(through(frame)), behind_ethernet(frame));
    }
  }
  EXPECT_EQ(count(Counter::kConnSnatExhausted), 0u);
}

TEST_F(DirectReturnTest, TheClusterIpIsTranslatedAsEver) {
  EXPECT_EQ(flows({{pipeline::PortIndex{0}, through(tcp4(kClient, "10.96.0.1", 40000, 80, kSyn))}}),
            Flows{"tcp 198.51.100.7:40000 > 10.244.1.21:80"});
}

TEST_F(DirectReturnTest, AnEndpointBehindARouterIsPassedOver) {
  group_.publisher().set_routes(pipeline::RouteTable(
      {{*core::parse_cidr("10.244.2.0/24"), pipeline::PortIndex{0}, std::nullopt},
       {core::Cidr(core::IpAddress{}, 0), pipeline::PortIndex{0}, core::parse_address("192.0.2.1")}}));
  const std::string only = PacketView(through(tcp4(kClient, kVip, 40000, 80, kSyn))).eth_dst();
  for (std::uint16_t n = 1; n < 4; ++n) {
    EXPECT_EQ(PacketView(through(tcp4(kClient, kVip, static_cast<std::uint16_t>(40000 + n), 80, kSyn)))
                  .eth_dst(),
              only);
  }
  EXPECT_EQ(count(Counter::kConnModeOutOfReach), 0u);
}

TEST_F(DirectReturnTest, WithNoEndpointOnLinkTheFlowIsRefusedAndCounted) {
  group_.publisher().set_routes(pipeline::RouteTable(
      {{*core::parse_cidr("198.51.100.0/24"), pipeline::PortIndex{0}, std::nullopt},
       {core::Cidr(core::IpAddress{}, 0), pipeline::PortIndex{0}, core::parse_address("192.0.2.1")}}));
  const Bytes out = through(tcp4(kClient, kVip, 40000, 80, kSyn));
  EXPECT_EQ(PacketView(out).tcp_flags() & kRst, kRst);
  EXPECT_EQ(PacketView(out).dst(), kClient);
  EXPECT_EQ(count(Counter::kConnModeOutOfReach), 1u);
  EXPECT_EQ(group_.connections(), 0u);
}

TEST_F(DirectReturnTest, AnEndpointThatLeavesTheLinkIsLostByCount) {
  through(tcp4(kClient, kVip, 40000, 80, kSyn));
  group_.publisher().set_routes(pipeline::RouteTable(
      {{core::Cidr(core::IpAddress{}, 0), pipeline::PortIndex{0}, core::parse_address("192.0.2.1")}}));
  EXPECT_TRUE(through(tcp4(kClient, kVip, 40000, 80, kAck)).empty());
  EXPECT_EQ(count(Counter::kConnModeLost), 1u);
}

TEST_F(DirectReturnTest, AnErrorAboutAnAnswerReachesTheBackendAsItIs) {
  const std::string backend = PacketView(through(tcp4(kClient, kVip, 40000, 80, kSyn))).eth_dst();
  const Bytes error = too_big_answer(kClient, 40000);
  const Bytes out = through(error);
  EXPECT_EQ(behind_ethernet(out), behind_ethernet(error));
  EXPECT_EQ(PacketView(out).eth_dst(), backend);
  EXPECT_EQ(count(Counter::kIcmpUntouched), 1u);
}

TEST_F(DirectReturnTest, PiecesOfADatagramGoToOneBackend) {
  const Bytes whole =
      PacketBuilder().eth().ipv4(kClient, "203.0.113.53").udp(5000, 53).payload(4000).build();
  for (const Bytes& piece : fragment_frame(whole, 1500, 77)) {
    EXPECT_EQ(behind_ethernet(through(piece)), behind_ethernet(piece));
  }
}

TEST_F(DirectReturnTest, LongerThanTheLinkIsAnsweredWithItsMtu) {
  through(tcp4(kClient, kVip, 40000, 80, kSyn));
  const Bytes big =
      PacketBuilder().eth().ipv4(kClient, kVip).dont_fragment().tcp(40000, 80).payload(1461).build();
  const Bytes out = through(big);
  EXPECT_EQ(PacketView(out).icmp_type(), 3);
  EXPECT_EQ(PacketView(out).icmp_rest(), 1500u);
}

SteppedGroupConfig four_inverted() {
  SteppedGroupConfig config;
  config.workers = 4;
  config.owner_twist = pipeline::OwnerTwist::kInverted;
  return config;
}
class DirectReturnHandoverTest : public DirectReturnTest {
 protected:
  DirectReturnHandoverTest() : DirectReturnTest(four_inverted()) {}
};
TEST_F(DirectReturnHandoverTest, EveryWorkerSendsAFlowToTheSameBackend) {
  const std::string backend = PacketView(through(tcp4(kClient, kVip, 40000, 80, kSyn), 0)).eth_dst();
  for (std::size_t w = 0; w < 4; ++w) {
    EXPECT_EQ(PacketView(through(tcp4(kClient, kVip, 40000, 80, kAck), w)).eth_dst(), backend);
  }
  EXPECT_EQ(group_.connections(), 1u);
}

// A node port or a mapped port that the mode cannot serve refuses at once.
TEST_F(DirectReturnTest, AModeThatCannotServeTheFrontendRefuses) {
  auto table = tables_.make();
  core::ServicePort block = *table->service(tables_.slot("web"));
  block.mode_refuses_node_port = true;
  core::TableBuilder builder(table);
  builder.set_service(tables_.slot("web"), block);
  group_.publisher().apply(*builder.freeze());
  EXPECT_EQ(PacketView(through(tcp4(kClient, "192.0.2.11", 40000, 30080, kSyn))).tcp_flags() & kRst,
            kRst);
  EXPECT_FALSE(behind_ethernet(through(tcp4(kClient, kVip, 40001, 80, kSyn))).empty());
  EXPECT_EQ(count(Counter::kConnCreated), 1u);
}

SteppedGroupConfig tiny_table() {
  SteppedGroupConfig config;
  config.connections = 30;
  return config;
}
/// All the table holds is established flows, so it has no place for another one.
class FullDirectReturnTest : public DirectReturnTest {
 protected:
  FullDirectReturnTest() : DirectReturnTest(tiny_table()) {
    for (std::uint32_t n = 0; n < group_.capacity(); ++n) {
      through(tcp4(kClient, kVip, static_cast<std::uint16_t>(40000 + n), 80, kSyn));
      through(tcp4(kClient, kVip, static_cast<std::uint16_t>(40000 + n), 80, kAck));
    }
  }
  void schedule_by(core::SchedulerKind kind, ForwardingMode mode) {
    for (const char* service : {"web", "dns"}) {
      tables_.services[service].scheduler = kind;
      tables_.services[service].mode = mode;
    }
    apply();
  }
};

TEST_F(FullDirectReturnTest, HashedFlowsGoOnWithoutAnEntryAndKeepTheirBackend) {
  for (const auto kind :
       {core::SchedulerKind::kMh, core::SchedulerKind::kSh, core::SchedulerKind::kDh}) {
    schedule_by(kind, ForwardingMode::kDr);
    const std::uint64_t before = count(Counter::kForwardedWithoutEntry);
    for (std::uint16_t sport = 1; sport <= 10; ++sport) {
      const Bytes syn = through(tcp4(kClient2, kVip, sport, 80, kSyn));
      ASSERT_FALSE(syn.empty());
      const Bytes ack = through(tcp4(kClient2, kVip, sport, 80, kAck));
      ASSERT_FALSE(ack.empty());
      EXPECT_EQ(PacketView(ack).eth_dst(), PacketView(syn).eth_dst());
      EXPECT_FALSE(through(udp4(kClient2, "203.0.113.53", sport, 53)).empty());
    }
    EXPECT_EQ(count(Counter::kForwardedWithoutEntry) - before, 30u);
  }
  EXPECT_EQ(group_.connections(), group_.capacity());
  EXPECT_EQ(count(Counter::kConnTableFull), 0u);
  EXPECT_EQ(count(Counter::kRejectRst), 0u);
}

TEST_F(FullDirectReturnTest, HashedFlowsThroughATunnelTooAndNeverPastTheLastHop) {
  schedule_by(core::SchedulerKind::kMh, ForwardingMode::kIpip);
  const Bytes syn = through(tcp4(kClient2, kVip, 1, 80, kSyn));
  const Bytes ack = through(tcp4(kClient2, kVip, 1, 80, kAck));
  ASSERT_GT(syn.size(), 34u);
  ASSERT_GT(ack.size(), 34u);
  EXPECT_EQ(Bytes(syn.begin() + 26, syn.begin() + 34), Bytes(ack.begin() + 26, ack.begin() + 34))
      << "outer addresses";
  EXPECT_EQ(count(Counter::kForwardedWithoutEntry), 2u);
  through(tcp4(kClient2, kVip, 1, 80, kAck, 1));
  EXPECT_EQ(count(Counter::kForwardedWithoutEntry), 2u);
  EXPECT_EQ(count(Counter::kTtlAnswered), 1u);
}

TEST_F(FullDirectReturnTest, PiecesOfAHashedDatagramNeedNoEntryEither) {
  schedule_by(core::SchedulerKind::kMh, ForwardingMode::kDr);
  const Bytes whole =
      PacketBuilder().eth().ipv4(kClient2, "203.0.113.53").udp(1, 53).payload(4000).build();
  for (const Bytes& piece : fragment_frame(whole, 1500, 77)) {
    EXPECT_EQ(behind_ethernet(through(piece)), behind_ethernet(piece));
  }
  EXPECT_EQ(count(Counter::kForwardedWithoutEntry), 3u);
  EXPECT_EQ(count(Counter::kFragmentNoFlow), 0u);
}

TEST_F(FullDirectReturnTest, AnErrorAboutAnAnswerFindsTheBackendOfAHashedFlow) {
  const Bytes error = too_big_answer(kClient2, 1);
  EXPECT_TRUE(through(error).empty());  // rr: such a flow has an entry or is not ours
  EXPECT_EQ(count(Counter::kHostIcmp), 1u);
  schedule_by(core::SchedulerKind::kMh, ForwardingMode::kDr);
  const std::string backend = PacketView(through(tcp4(kClient2, kVip, 1, 80, kSyn))).eth_dst();
  const Bytes out = through(error);
  EXPECT_EQ(behind_ethernet(out), behind_ethernet(error));
  EXPECT_EQ(PacketView(out).eth_dst(), backend);
  EXPECT_EQ(count(Counter::kIcmpUntouched), 1u);
}

TEST_F(FullDirectReturnTest, WithFallbackTheEndpointOnTheLinkTakesTheWholeFlow) {
  tables_.services["web"].scheduler_flags = core::kSchedFallback;
  schedule_by(core::SchedulerKind::kMh, ForwardingMode::kDr);
  group_.publisher().set_routes(pipeline::RouteTable(
      {{*core::parse_cidr("10.244.2.0/24"), pipeline::PortIndex{0}, std::nullopt},
       {core::Cidr(core::IpAddress{}, 0), pipeline::PortIndex{0}, core::parse_address("192.0.2.1")}}));
  for (std::uint16_t sport = 1; sport <= 10; ++sport) {  // about half of them hash to the other one
    for (const std::uint8_t flags : {kSyn, kAck}) {
      const Bytes out = through(tcp4(kClient2, kVip, sport, 80, flags));
      ASSERT_FALSE(out.empty());
      EXPECT_EQ(PacketView(out).eth_dst(), "02:00:00:00:00:22");
    }
  }
  EXPECT_EQ(count(Counter::kForwardedWithoutEntry), 20u);
  EXPECT_EQ(count(Counter::kConnModeOutOfReach), 0u);
}

TEST_F(FullDirectReturnTest, OtherFlowsNeedAnEntry) {
  EXPECT_TRUE(through(tcp4(kClient2, kVip, 1, 80, kSyn)).empty());  // rr
  EXPECT_EQ(count(Counter::kConnTableFull), 1u);
  through(tcp4(kClient2, kVip, 1, 80, kAck));
  EXPECT_EQ(count(Counter::kRejectRst), 1u);
  EXPECT_EQ(count(Counter::kForwardedWithoutEntry), 0u);
}

}  // namespace
}  // namespace sluice::test
