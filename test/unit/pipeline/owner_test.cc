#include "test/unit/pipeline/fixture.h"

namespace sluice::test {
namespace {

struct OwnerCase {
  std::size_t workers;
  bool inverted;
  bool fullnat;
};

class OwnerTest : public PipelineTest, public ::testing::WithParamInterface<OwnerCase> {
 protected:
  static SteppedGroupConfig config(const OwnerCase& c) {
    SteppedGroupConfig config;
    config.workers = c.workers;
    config.owner_twist = c.inverted ? pipeline::OwnerTwist::kInverted : pipeline::OwnerTwist::kNone;
    return config;
  }
  OwnerTest() : PipelineTest(config(GetParam())) {
    for (auto& [name, service] : tables_.services) {
      service.masquerade_external = GetParam().fullnat;
    }
    apply();
  }
  std::size_t natural_owner(const std::string& client, std::uint16_t port) const {
    pipeline::OwnerMap::Config config;
    config.workers = GetParam().workers;
    return pipeline::OwnerMap(config).of_client(*core::parse_address(client),
                                                core::Be16::from_host(port));
  }
};

// F1: whatever queue a packet arrives at, it is translated by the worker that has its connection.
TEST_P(OwnerTest, EveryPacketIsServedWhereverItArrives) {
  const std::size_t workers = GetParam().workers;
  for (std::uint16_t n = 0; n < 64; ++n) {
    const auto sport = static_cast<std::uint16_t>(40000 + n);
    const auto out = group_.exchange(n % workers, tcp4(kClient, kVip, sport, 80, kSyn));
    ASSERT_EQ(out.size(), 1u) << n;
    const PacketView syn(out[0].bytes);
    const std::string client_side = syn.src();
    for (std::size_t at = 0; at < workers; ++at) {
      EXPECT_EQ(sent(at, tcp4(syn.dst(), client_side, 8080, syn.sport(), kSyn | kAck)),
                Flows{"tcp 203.0.113.10:80 > 198.51.100.7:" + std::to_string(sport)});
      EXPECT_EQ(sent(at, tcp4(kClient, kVip, sport, 80, kAck)).size(), 1u);
    }
  }
  EXPECT_EQ(group_.connections(), 64u);
  EXPECT_EQ(count(Counter::kConnCreated), 64u);
  EXPECT_TRUE(group_.take_to_host().empty());
}

TEST_P(OwnerTest, UdpAndIpv6Too) {
  const std::size_t workers = GetParam().workers;
  for (std::uint16_t n = 0; n < 16; ++n) {
    const auto sport = static_cast<std::uint16_t>(40000 + n);
    const auto out = group_.exchange(n % workers, udp4(kClient, "203.0.113.53", sport, 53));
    ASSERT_EQ(out.size(), 1u);
    const PacketView request(out[0].bytes);
    EXPECT_EQ(sent((n + 1) % workers, udp4(kB1, request.src(), 5353, request.sport())),
              Flows{"udp 203.0.113.53:53 > 198.51.100.7:" + std::to_string(sport)});
    const auto six = group_.exchange(n % workers, tcp6(kClient6, kVip6, sport, 80, kSyn));
    ASSERT_EQ(six.size(), 1u);
    const PacketView syn(six[0].bytes);
    EXPECT_EQ(sent((n + 1) % workers, tcp6(kB6, syn.src(), 8080, syn.sport(), kSyn | kAck)),
              Flows{"tcp [fd00:203::10]:80 > [fd00:198::7]:" + std::to_string(sport)});
  }
}

TEST_P(OwnerTest, InvertedMapHandsEverySteeredPacketOver) {
  if (GetParam().fullnat || GetParam().workers == 1) {
    return;  // about packets steered by their client side, and a worker beside this one
  }
  for (std::uint16_t n = 0; n < 32; ++n) {
    const auto sport = static_cast<std::uint16_t>(40000 + n);
    const std::size_t queue = natural_owner(kClient, sport);
    group_.exchange(queue, tcp4(kClient, kVip, sport, 80, kSyn));
    group_.exchange(queue, tcp4(kClient, kVip, sport, 80, kAck));
  }
  EXPECT_EQ(count(Counter::kHandoverSent), GetParam().inverted ? 64u : 0u);
  EXPECT_EQ(count(Counter::kHandoverReceived), count(Counter::kHandoverSent));
}

INSTANTIATE_TEST_SUITE_P(Workers, OwnerTest,
                         ::testing::Values(OwnerCase{1, false, false}, OwnerCase{1, true, true},
                                           OwnerCase{2, false, false}, OwnerCase{2, true, false},
                                           OwnerCase{2, true, true}, OwnerCase{3, true, false},
                                           OwnerCase{4, false, true}, OwnerCase{4, true, false},
                                           OwnerCase{4, true, true}),
                         [](const auto& test) {
                           return std::to_string(test.param.workers) +
                                  (test.param.inverted ? "Inverted" : "Plain") +
                                  (test.param.fullnat ? "FullNat" : "Nat");
                         });

SteppedGroupConfig last_owns_all() {
  SteppedGroupConfig config;
  config.workers = 4;
  config.owner_twist = pipeline::OwnerTwist::kLast;
  return config;
}
class LastOwnerTest : public PipelineTest {
 protected:
  LastOwnerTest() : PipelineTest(last_owns_all()) {}
};

// One queue has everything, as on a port whose peer sends by one queue: not a packet of either
// direction is served where it arrives.
TEST_F(LastOwnerTest, EveryPacketIsHandedOver) {
  for (std::uint16_t sport = 40000; sport < 40032; ++sport) {
    ASSERT_EQ(group_.exchange(0, tcp4(kClient, kVip, sport, 80, kSyn)).size(), 1u);
    ASSERT_EQ(group_.exchange(0, tcp4(kClient, kVip, sport, 80, kAck)).size(), 1u);
  }
  EXPECT_EQ(count(Counter::kHandoverSent), 64u);
  EXPECT_EQ(group_.count(3, Counter::kConnCreated), 32u);
}

SteppedGroupConfig small_rings() {
  SteppedGroupConfig config;
  config.workers = 2;
  config.ring_size = 32;
  return config;
}
class RingTest : public PipelineTest {
 protected:
  RingTest() : PipelineTest(small_rings()) {}
};

// F34: all return traffic on the wrong worker, twice what the owner takes; then silence.
TEST_F(RingTest, FullRingDropsAreCountedAndOrderIsKept) {
  std::uint16_t sport = 40000;
  while (group_.owners().of_client(*core::parse_address(kClient), core::Be16::from_host(sport)) !=
         1) {
    ++sport;
  }
  const std::string backend = establish(sport, kClient, 1);
  for (int round = 0; round < 20; ++round) {
    for (int n = 0; n < 64; ++n) {
      group_.inject(0, tcp4(backend, kClient, 8080, sport, kAck));
    }
    group_.step(0);
    group_.step(0);
    group_.step(1);
    if (round == 10) {
      apply();  // a change in the middle of it
    }
  }
  group_.settle();
  EXPECT_EQ(count(Counter::kHandoverSent), count(Counter::kHandoverReceived));
  EXPECT_EQ(count(Counter::kHandoverSent) + count(Counter::kHandoverRingFull), 20u * 64);
  EXPECT_GT(count(Counter::kHandoverRingFull), 0u);
  EXPECT_EQ(group_.take_sent().size(), count(Counter::kHandoverSent));
}

TEST_F(RingTest, DrainEmptiesRingsAndQueues) {
  group_.set_resolve_neighbours(false);
  group_.exchange(0, udp4(kClient, "203.0.113.53", 5000, 53));
  for (std::uint16_t n = 0; n < 20; ++n) {
    group_.inject(0, tcp4(kClient, kVip, static_cast<std::uint16_t>(40000 + n), 80, kSyn));
  }
  group_.step(0);
  for (std::size_t w = 0; w < 2; ++w) {
    group_.drain(w);
  }
  EXPECT_EQ(group_.pool().free_count(), group_.pool().size());
}

// F22: a direct connection to the backend that shares the tuple of a finished translated one.
TEST_F(RingTest, DirectFlowClearsAFinishedEntryWithItsReverseKey) {
  for (const std::uint16_t sport :
       std::initializer_list<std::uint16_t>{40000, 40001, 40002, 40003}) {
    const std::string backend = establish(sport);
    group_.exchange(0, tcp4(kClient, kVip, sport, 80, kFin | kAck));
    group_.exchange(0, tcp4(backend, kClient, 8080, sport, kFin | kAck));
    group_.take_to_host();
    EXPECT_TRUE(group_.exchange(1, tcp4(kClient, backend, sport, 8080, kSyn)).empty());
    const auto answer = group_.exchange(0, tcp4(backend, kClient, 8080, sport, kSyn | kAck));
    EXPECT_TRUE(answer.empty());
    EXPECT_EQ(flows(group_.take_to_host()),
              (Flows{"tcp 198.51.100.7:" + std::to_string(sport) + " > " + backend + ":8080",
                     "tcp " + backend + ":8080 > 198.51.100.7:" + std::to_string(sport)}));
  }
  EXPECT_EQ(count(Counter::kConnDirectCleared), 4u);
}

TEST(OwnerMap, RequestAndReplyAgreeAndInversionMovesEveryFlow) {
  for (const std::size_t workers : {1u, 2u, 3u, 8u}) {
    pipeline::OwnerMap::Config config;
    config.workers = workers;
    const pipeline::OwnerMap plain(config);
    config.twist = pipeline::OwnerTwist::kInverted;
    const pipeline::OwnerMap inverted(config);
    std::vector<std::size_t> load(workers);
    for (std::uint16_t port = 1; port < 2000; ++port) {
      const auto client = *core::parse_address("198.51.100.7");
      const auto be = core::Be16::from_host(port);
      ++load[plain.of_client(client, be)];
      EXPECT_EQ(inverted.of_client(client, be), (plain.of_client(client, be) + 1) % workers);
    }
    for (const std::size_t flows_here : load) {
      EXPECT_GT(flows_here, 1000 / workers);
    }
  }
}

}  // namespace
}  // namespace sluice::test
