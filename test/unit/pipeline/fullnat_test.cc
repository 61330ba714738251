#include "test/unit/pipeline/fixture.h"

namespace sluice::test {
namespace {

class FullNatTest : public PipelineTest {
 protected:
  FullNatTest() {
    tables_.services["web"].masquerade_external = true;
    tables_.services["web6"].masquerade_external = true;
    apply();
  }
};

TEST_F(FullNatTest, SourceIsTheNodesAndTheAnswerFindsTheClient) {
  const auto out = group_.exchange(0, tcp4(kClient, kVip, 40000, 80, kSyn));
  ASSERT_EQ(out.size(), 1u);
  const PacketView syn(out[0].bytes);
  EXPECT_EQ(syn.src(), "192.0.2.11");
  EXPECT_GE(syn.sport(), 40960);
  EXPECT_EQ(syn.dst(), kB1);
  EXPECT_EQ(syn.checksum_error(), "");
  EXPECT_EQ(sent(0, tcp4(kB1, "192.0.2.11", 8080, syn.sport(), kSyn | kAck)),
            Flows{"tcp 203.0.113.10:80 > 198.51.100.7:40000"});
}

TEST_F(FullNatTest, Ipv6) {
  const auto out = group_.exchange(0, tcp6(kClient6, kVip6, 40000, 80, kSyn));
  ASSERT_EQ(out.size(), 1u);
  const PacketView syn(out[0].bytes);
  EXPECT_EQ(syn.src(), "fd00:11::11");
  EXPECT_EQ(syn.checksum_error(), "");
  EXPECT_EQ(sent(0, tcp6(kB6, "fd00:11::11", 8080, syn.sport(), kSyn | kAck)),
            Flows{"tcp [fd00:203::10]:80 > [fd00:198::7]:40000"});
}

// The host takes no packet from the tap that comes from its own address.
TEST_F(FullNatTest, AnEndpointOnTheHostSeesTheClient) {
  tables_.services["web"].endpoints = {"192.0.2.11:8080"};
  apply();
  EXPECT_TRUE(group_.exchange(0, tcp4(kClient, kVip, 40000, 80, kSyn)).empty());
  EXPECT_EQ(flows(group_.take_to_host()), Flows{"tcp 198.51.100.7:40000 > 192.0.2.11:8080"});
  group_.inject(0, tcp4("192.0.2.11", kClient, 8080, 40000, kSyn | kAck), 0,
                pipeline::Origin::kHost);
  group_.settle();
  EXPECT_EQ(flows(group_.take_sent()), Flows{"tcp 203.0.113.10:80 > 198.51.100.7:40000"});
}

TEST_F(FullNatTest, AnEndpointOnTheHostSeesAPoolAddress) {
  tables_.services["web"].endpoints = {"192.0.2.11:8080"};
  tables_.node.v4.snat_addresses = {*core::parse_address("192.0.2.200")};
  tables_.node.snat_first_port = 1024;
  apply();
  EXPECT_TRUE(group_.exchange(0, tcp4(kClient, kVip, 40000, 80, kSyn)).empty());
  const auto out = group_.take_to_host();
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(PacketView(out[0].bytes).src(), "192.0.2.200");
}

TEST_F(FullNatTest, PoolAddressesAreUsedWhenThereAreAny) {
  tables_.node.v4.snat_addresses = {*core::parse_address("192.0.2.200")};
  tables_.node.snat_first_port = 1024;
  apply();
  const auto out = group_.exchange(0, tcp4(kClient, kVip, 40000, 80, kSyn));
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(PacketView(out[0].bytes).src(), "192.0.2.200");
}

// F33, F17: every port that is not excluded is used, then flows are refused by their own counter.
TEST_F(FullNatTest, PortsAreUsedUpToTheLastOneAndNotBeyond) {
  tables_.node.snat_first_port = 30077;
  tables_.node.snat_last_port = 30084;  // eight ports, 30080 is the node port
  tables_.services["web"].endpoints = {"10.244.1.21:8080"};
  apply();
  std::vector<std::uint16_t> used;
  for (std::uint16_t n = 0; n < 9; ++n) {
    const auto out =
        group_.exchange(0, tcp4(kClient, kVip, static_cast<std::uint16_t>(40000 + n), 80, kSyn));
    if (out.size() == 1) {
      used.push_back(PacketView(out[0].bytes).sport());
    }
  }
  std::sort(used.begin(), used.end());
  EXPECT_EQ(used, (std::vector<std::uint16_t>{30077, 30078, 30079, 30081, 30082, 30083, 30084}));
  EXPECT_EQ(count(Counter::kConnSnatExhausted), 2u);
  // The same ports serve another backend at the same time.
  tables_.services["web"].endpoints = {"10.244.2.22:8080"};
  apply();
  EXPECT_EQ(group_.exchange(0, tcp4(kClient2, kVip, 40000, 80, kSyn)).size(), 1u);
}

TEST_F(FullNatTest, ExhaustionIsCountedByServiceAndAddressAndRefusesOnlyTheNewFlow) {
  tables_.node.v4.snat_addresses = {*core::parse_address("192.0.2.200"),
                                    *core::parse_address("192.0.2.201")};
  tables_.node.snat_first_port = 2048;
  tables_.node.snat_last_port = 2049;
  tables_.services["web"].endpoints = {"10.244.1.21:8080"};
  tables_.services["web2"] = tables_.services["web"];
  tables_.services["web2"].vip = "203.0.113.12";
  tables_.services["web2"].cluster_ip = "10.96.0.12";
  tables_.services["web2"].node_port = 0;
  tables_.services["web2"].endpoints = {"10.244.2.22:8080"};
  apply();
  std::vector<std::string> sources;
  for (std::uint16_t n = 0; n < 6; ++n) {
    for (const SentFrame& f : group_.exchange(
             0, tcp4(kClient, kVip, static_cast<std::uint16_t>(40000 + n), 80, kSyn))) {
      sources.push_back(PacketView(f.bytes).src() + ":" +
                        std::to_string(PacketView(f.bytes).sport()));
    }
  }
  std::sort(sources.begin(), sources.end());
  EXPECT_EQ(sources, (std::vector<std::string>{"192.0.2.200:2048", "192.0.2.200:2049",
                                               "192.0.2.201:2048", "192.0.2.201:2049"}));
  EXPECT_EQ(count(Counter::kConnSnatExhausted), 2u);
  std::vector<std::string> rows;
  for (const auto& row : group_.source_exhaustion()) {
    EXPECT_EQ(row.service, tables_.slot("web"));
    rows.push_back(core::to_string(row.address) + "=" + std::to_string(row.flows));
  }
  EXPECT_EQ(rows, (std::vector<std::string>{"192.0.2.200=2", "192.0.2.201=2"}));
  // Those that have a port go on, and so does another Service.
  EXPECT_EQ(group_.exchange(0, tcp4(kClient, kVip, 40000, 80, kAck)).size(), 1u);
  EXPECT_EQ(group_.exchange(0, tcp4(kClient, "203.0.113.12", 40000, 80, kSyn)).size(), 1u);
}

TEST(ExhaustionCounts, ASlotThatAnotherServiceGetsStartsFromNothing) {
  const auto service = [](const char* name) {
    core::ServicePort s;
    s.name = name;
    return pipeline::tag_of(s);
  };
  const auto address = *core::parse_address("192.0.2.200");
  pipeline::ExhaustionCounts counts(2);
  counts.add(0, core::ServiceSlot{3}, service("shop/a"), address);
  counts.add(0, core::ServiceSlot{3}, service("shop/a"), address);
  counts.add(1, core::ServiceSlot{3}, service("shop/a"), address);
  ASSERT_EQ(counts.read().size(), 1u);
  EXPECT_EQ(counts.read()[0].flows, 3u);
  counts.add(0, core::ServiceSlot{3}, service("shop/b"), address);
  counts.add(1, core::ServiceSlot{3}, service("shop/b"), address);
  ASSERT_EQ(counts.read().size(), 1u);
  EXPECT_EQ(counts.read()[0].service_tag, service("shop/b"));
  EXPECT_EQ(counts.read()[0].flows, 2u);
}

TEST_F(FullNatTest, ASteeredPortIsAPreferenceOnly) {
  tables_.services["web"].endpoints = {"10.244.1.21:8080"};
  apply();
  const auto source_port = [&](std::uint16_t client_port) {
    const auto out = group_.exchange(0, tcp4(kClient, kVip, client_port, 80, kSyn));
    return out.size() == 1 ? PacketView(out[0].bytes).sport() : std::uint16_t{0};
  };
  group_.io(0).steer = [](std::uint16_t) { return std::uint16_t{50001}; };
  EXPECT_EQ(source_port(40000), 50001);
  const std::uint16_t other = source_port(40001);  // taken already
  EXPECT_NE(other, 50001);
  EXPECT_GE(other, 40960);
  group_.io(0).steer = [](std::uint16_t) { return std::uint16_t{2000}; };  // not of the pool
  EXPECT_GE(source_port(40002), 40960);
}

TEST_F(FullNatTest, AFreePortOfAnotherAddressComesBeforeAHeldOne) {
  tables_.node.v4.snat_addresses = {*core::parse_address("192.0.2.200"),
                                    *core::parse_address("192.0.2.201")};
  tables_.node.snat_first_port = 2048;
  tables_.node.snat_last_port = 2048;
  tables_.services["web"].endpoints = {"10.244.1.21:8080"};
  apply();
  std::vector<std::string> sources;
  for (std::uint16_t n = 0; n < 3; ++n) {
    const auto port = static_cast<std::uint16_t>(40000 + n);
    const auto out = group_.exchange(0, tcp4(kClient, kVip, port, 80, kSyn));
    ASSERT_EQ(out.size(), 1u);
    const std::string source = PacketView(out[0].bytes).src();
    sources.push_back(source);
    group_.exchange(0, tcp4(kB1, source, 8080, 2048, kSyn | kAck));
    group_.exchange(0, tcp4(kClient, kVip, port, 80, kAck));
    group_.exchange(0, tcp4(kB1, source, 8080, 2048, kFin | kAck));
    group_.exchange(0, tcp4(kClient, kVip, port, 80, kFin | kAck));
    group_.advance_ms(1000);
  }
  EXPECT_NE(sources[0], sources[1]);
  EXPECT_EQ(sources[2], sources[0]);  // both are held, the first one for longer
  EXPECT_EQ(count(Counter::kConnSnatReused), 1u);
}

TEST_F(PipelineTest, HairpinOfALocalEndpointIsMasqueraded) {
  tables_.services["web"].endpoints = {"10.244.1.21:8080"};
  tables_.services["web"].local = {"10.244.1.21:8080"};
  apply();
  const auto out = group_.exchange(0, tcp4(kB1, "10.96.0.1", 40000, 80, kSyn));
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(PacketView(out[0].bytes).src(), "192.0.2.11");
  EXPECT_EQ(PacketView(out[0].bytes).dst(), kB1);
}

// One UDP socket, two VIPs, one backend: the reply keys are the same.
TEST_F(PipelineTest, OneSocketToTwoVipsOfOneBackendIsAnsweredByBoth) {
  tables_.services["dns2"] = {.cluster_ip = "10.96.0.3",
                              .vip = "203.0.113.54",
                              .port = 53,
                              .protocol = core::Protocol::kUdp,
                              .endpoints = {"10.244.1.21:5353"}};
  apply();
  EXPECT_EQ(sent(0, udp4(kClient, "203.0.113.53", 5000, 53)),
            Flows{"udp 198.51.100.7:5000 > 10.244.1.21:5353"});
  const auto second = group_.exchange(0, udp4(kClient, "203.0.113.54", 5000, 53));
  ASSERT_EQ(second.size(), 1u);
  const PacketView request(second[0].bytes);
  EXPECT_EQ(request.src(), "192.0.2.11");
  EXPECT_EQ(count(Counter::kConnReplyClash), 1u);
  EXPECT_EQ(sent(0, udp4(kB1, kClient, 5353, 5000)),
            Flows{"udp 203.0.113.53:53 > 198.51.100.7:5000"});
  EXPECT_EQ(sent(0, udp4(kB1, "192.0.2.11", 5353, request.sport())),
            Flows{"udp 203.0.113.54:53 > 198.51.100.7:5000"});
}

TEST_F(PipelineTest, ClashWithAnotherCandidateKeepsTheClientAddress) {
  tables_.services["dns2"] = {.cluster_ip = "10.96.0.3",
                              .vip = "203.0.113.54",
                              .port = 53,
                              .protocol = core::Protocol::kUdp,
                              .endpoints = {"10.244.1.21:5353", "10.244.2.22:5353"}};
  apply();
  sent(0, udp4(kClient, "203.0.113.53", 5000, 53));
  EXPECT_EQ(sent(0, udp4(kClient, "203.0.113.54", 5000, 53)),
            Flows{"udp 198.51.100.7:5000 > 10.244.2.22:5353"});
}

}  // namespace
}  // namespace sluice::test
