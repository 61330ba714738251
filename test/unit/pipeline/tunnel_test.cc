// Mode ipip: the packet travels to the backend inside another one.

#include <set>

#include "test/unit/pipeline/fixture.h"

namespace sluice::test {
namespace {

using core::ForwardingMode;

constexpr const char* kRemote4 = "10.77.0.5";
constexpr const char* kRemote6 = "fd00:77::5";

class TunnelTest : public PipelineTest {
 protected:
  explicit TunnelTest(const SteppedGroupConfig& config = {}) : PipelineTest(config) {
    backends("10.77.0.5:80", "[fd00:77::5]:80");
  }
  void backends(const std::string& of_web, const std::string& of_web6) {
    for (auto& [name, endpoint] : {std::pair{"web", of_web}, std::pair{"web6", of_web6}}) {
      tables_.services[name].mode = ForwardingMode::kIpip;
      tables_.services[name].endpoints = {endpoint};
    }
    apply();
  }
  void cross_families() { backends("[fd00:77::5]:80", "10.77.0.5:80"); }
  void set_mtu(std::uint16_t mtu) {
    auto ports = group_.default_ports();
    ports[0].mtu = mtu;
    group_.publisher().set_ports(std::move(ports));
  }
  Bytes through(const Bytes& frame, std::size_t worker = 0) {
    const auto out = group_.exchange(worker, frame);
    return out.size() == 1 ? out[0].bytes : Bytes{};
  }
  static Bytes big4(std::size_t ip_length) {
    return PacketBuilder()
        .eth()
        .ipv4(kClient, kVip)
        .dont_fragment()
        .tcp(40000, 80)
        .payload(ip_length - 40)
        .build();
  }
  static Bytes big6(std::size_t ip_length) {
    return PacketBuilder().eth().ipv6(kClient6, kVip6).tcp(40000, 80).payload(ip_length - 60).build();
  }
  /// What a router on the way to the backend says about `outer`.
  static Bytes too_big4(const Bytes& outer, std::uint16_t mtu, std::size_t quoted = 576 - 28) {
    return PacketBuilder()
        .eth()
        .ipv4("10.9.9.9", PacketView(outer).src())
        .icmp(3, 4, mtu)
        .quote(outer, quoted)
        .build();
  }
  static Bytes too_big6(const Bytes& outer, std::uint32_t mtu, std::size_t quoted = 1280 - 48) {
    return PacketBuilder()
        .eth()
        .ipv6("fd00:9::9", PacketView(outer).src())
        .icmp(2, 0, mtu)
        .quote(outer, quoted)
        .build();
  }
};

/// The tunnelled packet is the client's with one hop taken; both headers are sound.
void expect_tunnelled(const Bytes& out, const Bytes& sent, const std::string& src,
                      const std::string& dst) {
  ASSERT_FALSE(out.empty());
  const PacketView outer(out);
  EXPECT_EQ(outer.src(), src);
  EXPECT_EQ(outer.dst(), dst);
  EXPECT_EQ(outer.ttl(), 64);
  EXPECT_EQ(outer.checksum_error(), "");
  EXPECT_EQ(outer.ip_length(), out.size() - 14);
  const Bytes inside = outer.inner_frame();
  const PacketView inner(inside);
  const PacketView before(sent);
  EXPECT_EQ(outer.protocol(), before.is_v4() ? 4 : 41);
  EXPECT_EQ(inner.flow(), before.flow());
  EXPECT_EQ(inner.ttl(), before.ttl() - 1);
  EXPECT_EQ(inner.checksum_error(), "");
  EXPECT_EQ(inner.l4(), before.l4());
  if (outer.is_v4()) {
    EXPECT_TRUE(outer.dont_fragment());
  }
}

TEST_F(TunnelTest, Ipv4InIpv4) {
  const Bytes syn = tcp4(kClient, kVip, 40000, 80, kSyn);
  expect_tunnelled(through(syn), syn, "192.0.2.11", kRemote4);
  const Bytes ack = tcp4(kClient, kVip, 40000, 80, kAck);
  expect_tunnelled(through(ack), ack, "192.0.2.11", kRemote4);
}

TEST_F(TunnelTest, Ipv6InIpv6) {
  const Bytes syn = tcp6(kClient6, kVip6, 40000, 80, kSyn);
  expect_tunnelled(through(syn), syn, "fd00:11::11", kRemote6);
  const Bytes ack = tcp6(kClient6, kVip6, 40000, 80, kAck);
  expect_tunnelled(through(ack), ack, "fd00:11::11", kRemote6);
}

TEST_F(TunnelTest, Ipv4InIpv6AndIpv6InIpv4) {
  cross_families();
  const Bytes syn = tcp4(kClient, kVip, 40000, 80, kSyn);
  expect_tunnelled(through(syn), syn, "fd00:11::11", kRemote6);
  const Bytes syn6 = tcp6(kClient6, kVip6, 40000, 80, kSyn);
  expect_tunnelled(through(syn6), syn6, "192.0.2.11", kRemote4);
  // Established, and judged again: the entry names the backend by itself.
  tables_.services.erase("dns");
  apply();
  const Bytes ack = tcp4(kClient, kVip, 40000, 80, kAck);
  expect_tunnelled(through(ack), ack, "fd00:11::11", kRemote6);
  const Bytes ack6 = tcp6(kClient6, kVip6, 40000, 80, kAck);
  expect_tunnelled(through(ack6), ack6, "192.0.2.11", kRemote4);
  EXPECT_EQ(count(Counter::kConnDetached), 0u);
}

TEST_F(TunnelTest, ADumpNamesABackendOfTheOtherFamily) {
  cross_families();
  through(tcp4(kClient, kVip, 40000, 80, kSyn));
  std::vector<std::string> rows;
  (void)group_.dump_connections({}, [&](const pipeline::ConnectionRow& row) {
    rows.push_back(core::to_string(row.flow.src, row.flow.sport) + " " +
                   core::to_string(row.backend, row.backend_port) + " " + core::to_string(row.snat));
    return true;
  });
  EXPECT_EQ(rows, std::vector<std::string>{"198.51.100.7:40000 [fd00:77::5]:80 198.51.100.7"});
}

TEST_F(TunnelTest, TheClusterIpOfACrossedServiceRefuses) {
  cross_families();
  const Bytes out = through(tcp4(kClient, "10.96.0.1", 40000, 80, kSyn));
  EXPECT_EQ(PacketView(out).tcp_flags() & kRst, kRst);
}

TEST_F(TunnelTest, EthernetPaddingStaysOutside) {
  const Bytes ack =
      PacketBuilder().eth().ipv4(kClient, kVip).tcp(40000, 80, kSyn).pad_to(60).build();
  const Bytes out = through(ack);
  EXPECT_EQ(out.size(), 14u + 20 + 40);
  EXPECT_EQ(PacketView(out).ip_length(), 60u);
}

TEST_F(TunnelTest, TheTrafficClassIsCopiedAndTheHopIsTaken) {
  Bytes syn = tcp4(kClient, kVip, 40000, 80, kSyn);
  EXPECT_EQ(PacketView(through(tcp4(kClient, kVip, 40001, 80, kSyn, 1))).icmp_type(), 11);
  EXPECT_EQ(count(Counter::kTtlAnswered), 1u);
  Bytes syn6 = tcp6(kClient6, kVip6, 40000, 80, kSyn);
  syn6[14] = 0x6b;  // traffic class 0xb8 with a flow label behind it
  syn6[15] = 0x80;
  const Bytes out = through(syn6);
  ASSERT_FALSE(out.empty());
  EXPECT_EQ(out[14], 0x6b);
  EXPECT_EQ(out[15] & 0xf0, 0x80);
}

TEST_F(TunnelTest, OuterSourcesFillAConfiguredPrefixByFlow) {
  tables_.node.v4.tunnel_sources = core::parse_cidr("192.0.2.128/28");
  tables_.node.v6.tunnel_sources = core::parse_cidr("fd00:11:0:1::/64");
  apply();
  std::set<std::string> used;
  std::set<std::string> used6;
  for (std::uint16_t n = 0; n < 200; ++n) {
    const auto port = static_cast<std::uint16_t>(40000 + n);
    const std::string source = PacketView(through(tcp4(kClient, kVip, port, 80, kSyn))).src();
    EXPECT_EQ(PacketView(through(tcp4(kClient, kVip, port, 80, kAck))).src(), source);
    EXPECT_TRUE(tables_.node.v4.tunnel_sources->contains(*core::parse_address(source)));
    used.insert(source);
    const std::string source6 = PacketView(through(tcp6(kClient6, kVip6, port, 80, kSyn))).src();
    EXPECT_TRUE(tables_.node.v6.tunnel_sources->contains(*core::parse_address(source6)));
    used6.insert(source6);
  }
  EXPECT_EQ(used.size(), 16u);
  EXPECT_EQ(used6.size(), 200u);
}

// F8: a packet at the link's MTU cannot take the outer header; its sender hears what fits.
TEST_F(TunnelTest, TooBigIsAnsweredWithWhatTheTunnelCarries) {
  through(tcp4(kClient, kVip, 40000, 80, kSyn));
  through(tcp6(kClient6, kVip6, 40000, 80, kSyn));
  EXPECT_EQ(through(big4(1480)).size(), 14u + 1500);
  const Bytes four = through(big4(1481));
  EXPECT_EQ(PacketView(four).flow(), "icmp 192.0.2.11 > 198.51.100.7");
  EXPECT_EQ(PacketView(four).icmp_type(), 3);
  EXPECT_EQ(PacketView(four).icmp_code(), 4);
  EXPECT_EQ(PacketView(four).icmp_rest(), 1480u);
  EXPECT_EQ(PacketView(four).checksum_error(), "");
  EXPECT_EQ(through(big6(1460)).size(), 14u + 1500);
  const Bytes six = through(big6(1461));
  EXPECT_EQ(PacketView(six).icmp_type(), 2);
  EXPECT_EQ(PacketView(six).icmp_rest(), 1460u);
  EXPECT_EQ(count(Counter::kTooBigAnswered), 2u);
}

TEST_F(TunnelTest, TheOverheadIsTheOuterFamilys) {
  cross_families();
  through(tcp4(kClient, kVip, 40000, 80, kSyn));
  through(tcp6(kClient6, kVip6, 40000, 80, kSyn));
  EXPECT_EQ(through(big4(1460)).size(), 14u + 1500);
  EXPECT_EQ(PacketView(through(big4(1461))).icmp_rest(), 1460u);
  EXPECT_EQ(through(big6(1480)).size(), 14u + 1500);
  EXPECT_EQ(PacketView(through(big6(1481))).icmp_rest(), 1480u);
}

TEST_F(TunnelTest, WithoutDontFragmentItIsAnsweredAllTheSame) {
  through(tcp4(kClient, kVip, 40000, 80, kSyn));
  const Bytes out = through(
      PacketBuilder().eth().ipv4(kClient, kVip).id(5).tcp(40000, 80).payload(1441).build());
  EXPECT_EQ(PacketView(out).icmp_rest(), 1480u);
}

TEST_F(TunnelTest, Ipv6IsNeverToldLessThan1280) {
  set_mtu(1300);
  through(tcp6(kClient6, kVip6, 40000, 80, kSyn));
  EXPECT_EQ(PacketView(through(big6(1281))).icmp_rest(), 1280u);
  // What IPv6 may send the tunnel would have to take; this link cannot.
  EXPECT_TRUE(through(big6(1280)).empty());
  EXPECT_EQ(count(Counter::kTunnelTooNarrow), 1u);
  EXPECT_EQ(through(big6(1260)).size(), 14u + 1300);
}

TEST_F(TunnelTest, ARouterTeachesTheMtuAndTheClientIsTold) {
  through(tcp4(kClient, kVip, 40000, 80, kSyn));
  const Bytes outer = through(big4(1480));
  const Bytes told = through(too_big4(outer, 1400));
  EXPECT_EQ(PacketView(told).flow(), "icmp 192.0.2.11 > 198.51.100.7");
  EXPECT_EQ(PacketView(told).icmp_rest(), 1380u);
  EXPECT_EQ(PacketView(told).checksum_error(), "");
  EXPECT_EQ(PacketView(PacketView(told).inner_frame()).flow(),
            "tcp 198.51.100.7:40000 > 203.0.113.10:80");
  EXPECT_EQ(PacketView(through(big4(1381))).icmp_rest(), 1380u);
  EXPECT_EQ(through(big4(1380)).size(), 14u + 1400);
  // After ten minutes the path is tried anew.
  through(tcp4(kClient, kVip, 40000, 80, kAck));
  group_.run_ms(601'000, 10'000);
  EXPECT_EQ(through(big4(1480)).size(), 14u + 1500);
}

TEST_F(TunnelTest, Ipv6RoutersTeachToo) {
  through(tcp6(kClient6, kVip6, 40000, 80, kSyn));
  const Bytes told = through(too_big6(through(big6(1460)), 1400));
  EXPECT_EQ(PacketView(told).flow(), "icmp6 fd00:11::11 > fd00:198::7");
  EXPECT_EQ(PacketView(told).icmp_type(), 2);
  EXPECT_EQ(PacketView(told).icmp_rest(), 1360u);
  EXPECT_EQ(PacketView(told).checksum_error(), "");
}

TEST_F(TunnelTest, AcrossFamiliesTheClientIsToldInItsOwn) {
  cross_families();
  through(tcp4(kClient, kVip, 40000, 80, kSyn));
  through(tcp6(kClient6, kVip6, 40000, 80, kSyn));
  const Bytes four = through(too_big6(through(big4(1460)), 1400));
  EXPECT_EQ(PacketView(four).flow(), "icmp 192.0.2.11 > 198.51.100.7");
  EXPECT_EQ(PacketView(four).icmp_rest(), 1360u);
  const Bytes six = through(too_big4(through(big6(1480)), 1400));
  EXPECT_EQ(PacketView(six).flow(), "icmp6 fd00:11::11 > fd00:198::7");
  EXPECT_EQ(PacketView(six).icmp_rest(), 1380u);
}

// RFC 4213 3.2.2: 1280 bytes of IPv6 pass a narrower IPv4 path in pieces.
TEST_F(TunnelTest, AnIpv4PathTooNarrowForIpv6MayFragment) {
  cross_families();
  through(tcp6(kClient6, kVip6, 40000, 80, kSyn));
  const Bytes told = through(too_big4(through(big6(1400)), 1000));
  EXPECT_EQ(PacketView(told).icmp_rest(), 1280u);
  const Bytes piecemeal = through(big6(1280));
  ASSERT_FALSE(piecemeal.empty());
  EXPECT_FALSE(PacketView(piecemeal).dont_fragment());
  EXPECT_NE(PacketView(piecemeal).ip_id(), 0);
  EXPECT_EQ(PacketView(piecemeal).checksum_error(), "");
  EXPECT_TRUE(through(too_big4(piecemeal, 900)).empty());
  EXPECT_EQ(count(Counter::kTunnelErrorUseless), 1u);
}

TEST_F(TunnelTest, AShortQuoteTeachesTheMtuAlone) {
  through(tcp4(kClient, kVip, 40000, 80, kSyn));
  const Bytes outer = through(big4(1480));
  EXPECT_TRUE(through(too_big4(outer, 1400, 28)).empty());
  EXPECT_EQ(count(Counter::kTunnelMtuLearned), 1u);
  EXPECT_EQ(PacketView(through(big4(1480))).icmp_rest(), 1380u);
}

TEST_F(TunnelTest, AnOldRouterThatNamesNoMtuMeansTheNextSizeInUse) {
  through(tcp4(kClient, kVip, 40000, 80, kSyn));
  EXPECT_EQ(PacketView(through(too_big4(through(big4(1480)), 0))).icmp_rest(), 1472u);
}

TEST_F(TunnelTest, ForgedErrorsTeachNothing) {
  through(tcp4(kClient, kVip, 40000, 80, kSyn));
  const Bytes outer = through(big4(1480));
  // About a packet of somebody else, and about a flow that is not there.
  Bytes other = outer;
  other[14 + 12] ^= 1;
  EXPECT_TRUE(through(PacketBuilder()
                          .eth()
                          .ipv4("10.9.9.9", "192.0.2.11")
                          .icmp(3, 4, 600)
                          .quote(other, 100)
                          .build())
                  .empty());
  Bytes unknown = outer;
  unknown[14 + 40] ^= 1;  // the client's port
  EXPECT_TRUE(through(too_big4(unknown, 600)).empty());
  EXPECT_EQ(count(Counter::kTunnelMtuLearned), 0u);
  // And never below what every path carries.
  EXPECT_EQ(PacketView(through(too_big4(outer, 68))).icmp_rest(), 532u);
}

// Hashing alone sends such a flow on; it may have found the table full.
TEST_F(TunnelTest, ErrorsAboutAHashedFlowWithoutAnEntryTeachAndAreTold) {
  tables_.services["web"].scheduler = core::SchedulerKind::kMh;
  apply();
  const Bytes outer = through(big4(1480));
  ASSERT_EQ(outer.size(), 14u + 1500);
  Bytes elsewhere = outer;
  elsewhere[14 + 19] ^= 1;  // a backend that this flow does not have
  EXPECT_TRUE(through(too_big4(elsewhere, 600)).empty());
  EXPECT_EQ(count(Counter::kTunnelMtuLearned), 0u);
  const Bytes told = through(too_big4(outer, 1400));
  EXPECT_EQ(PacketView(told).flow(), "icmp 192.0.2.11 > 198.51.100.7");
  EXPECT_EQ(PacketView(told).icmp_rest(), 1380u);
  EXPECT_EQ(PacketView(through(big4(1381))).icmp_rest(), 1380u);
  const Bytes about_answer = too_big_answer(kClient, 40000);
  expect_tunnelled(through(about_answer), about_answer, "192.0.2.11", kRemote4);
  EXPECT_EQ(count(Counter::kIcmpUntouched), 1u);
  EXPECT_EQ(group_.connections(), 0u);
}

TEST_F(TunnelTest, AnUnreachableBackendIsToldAsAnUnreachableHost) {
  through(tcp4(kClient, kVip, 40000, 80, kSyn));
  const Bytes outer = through(big4(1000));
  const Bytes told = through(PacketBuilder()
                                 .eth()
                                 .ipv4("10.9.9.9", "192.0.2.11")
                                 .icmp(11, 0)
                                 .quote(outer, 200)
                                 .build());
  EXPECT_EQ(PacketView(told).icmp_type(), 3);
  EXPECT_EQ(PacketView(told).icmp_code(), 1);
  EXPECT_EQ(count(Counter::kTunnelErrorTold), 1u);
}

TEST_F(TunnelTest, AnErrorAboutAnAnswerTravelsThroughTheTunnel) {
  through(tcp4(kClient, kVip, 40000, 80, kSyn));
  const Bytes error = too_big_answer(kClient, 40000);
  expect_tunnelled(through(error), error, "192.0.2.11", kRemote4);
}

TEST_F(TunnelTest, PiecesOfADatagramTravelOneByOne) {
  tables_.services["dns"].mode = ForwardingMode::kIpip;
  tables_.services["dns"].endpoints = {"10.77.0.5:53"};
  apply();
  const Bytes whole =
      PacketBuilder().eth().ipv4(kClient, "203.0.113.53").udp(5000, 53).payload(4000).build();
  for (const Bytes& piece : fragment_frame(whole, 1400, 77)) {
    const Bytes out = through(piece);
    ASSERT_FALSE(out.empty());
    EXPECT_EQ(PacketView(out).dst(), kRemote4);
    const Bytes inside = PacketView(out).inner_frame();
    EXPECT_EQ(PacketView(inside).fragment_offset(), PacketView(piece).fragment_offset());
  }
}

TEST_F(TunnelTest, WithoutAnAddressOfTheOuterFamilyNothingIsSent) {
  cross_families();
  auto ports = group_.default_ports();
  ports[0].addresses.pop_back();  // IPv6
  group_.publisher().set_ports(std::move(ports));
  tables_.node.v6.node_ip.reset();
  apply();
  EXPECT_TRUE(through(tcp4(kClient, kVip, 40000, 80, kSyn)).empty());
  EXPECT_EQ(count(Counter::kTunnelNoSource), 1u);
}

SteppedGroupConfig four_inverted() {
  SteppedGroupConfig config;
  config.workers = 4;
  config.owner_twist = pipeline::OwnerTwist::kInverted;
  return config;
}
class TunnelHandoverTest : public TunnelTest {
 protected:
  TunnelHandoverTest() : TunnelTest(four_inverted()) {}
};

TEST_F(TunnelHandoverTest, ErrorsFindTheOwnerAndAllWorkersLearn) {
  through(tcp4(kClient, kVip, 40000, 80, kSyn));
  const Bytes outer = through(big4(1480));
  for (std::size_t w = 0; w < 4; ++w) {
    EXPECT_EQ(PacketView(through(too_big4(outer, 1400), w)).icmp_rest(), 1380u);
  }
  group_.run_ms(5, 2);
  for (std::uint16_t n = 1; n < 20; ++n) {  // flows of every worker
    const auto port = static_cast<std::uint16_t>(40000 + n);
    const Bytes syn = through(PacketBuilder()
                                  .eth()
                                  .ipv4(kClient, kVip)
                                  .dont_fragment()
                                  .tcp(port, 80, kSyn)
                                  .payload(1350)
                                  .build());
    EXPECT_EQ(PacketView(syn).icmp_rest(), 1380u) << port;
  }
}

}  // namespace
}  // namespace sluice::test
