#include "dataplane/core/conn/snat_ports.h"

#include <set>

#include <gtest/gtest.h>

#include "test/support/conn_fixture.h"
#include "test/support/map_index.h"

namespace sluice::core {
namespace {

using test::fullnat_flow;
using Index = test::MapIndex<FlowKey4>;
using Under = test::TableUnderTest<Ipv4, Index>;

TEST(PortOwnersTest, EveryPortOfThePoolHasOneOwnerAndBlocksGoRound) {
  const PortOwners owners(1024, 65535, 3);
  EXPECT_EQ(owners.owner(std::uint16_t{1023}), PortOwners::kNoOwner);
  EXPECT_EQ(owners.owner(std::uint16_t{1024}), 0);
  EXPECT_EQ(owners.owner(std::uint16_t{1535}), 0);
  EXPECT_EQ(owners.owner(std::uint16_t{1536}), 1);
  EXPECT_EQ(owners.owner(std::uint16_t{2048}), 2);
  EXPECT_EQ(owners.owner(std::uint16_t{2560}), 0);
  std::size_t sum = 0;
  for (unsigned w = 0; w < 3; ++w) {
    for (const std::uint16_t port : owners.ports_of(w)) {
      EXPECT_EQ(owners.owner(port), w);
    }
    sum += owners.ports_of(w).size();
  }
  EXPECT_EQ(sum, 64512u);
}

TEST(PortOwnersTest, PoolOutsideBlockBoundsIsCutExactly) {
  const PortOwners owners(40960, 41000, 1);
  EXPECT_EQ(owners.ports_of(0).size(), 41u);
  EXPECT_EQ(owners.owner(std::uint16_t{41001}), PortOwners::kNoOwner);
}

// F33: a small pool is not left to one worker.
TEST(PortOwnersTest, SmallPoolIsSplitInSmallerBlocks) {
  const PortOwners owners(50000, 50007, 4);
  for (unsigned w = 0; w < 4; ++w) {
    EXPECT_EQ(owners.ports_of(w).size(), 2u);
  }
}

TEST(PortOwnersTest, NoPoolHasNoOwner) {
  const PortOwners none;
  EXPECT_EQ(none.owner(std::uint16_t{0}), PortOwners::kNoOwner);
  EXPECT_EQ(none.owner(std::uint16_t{65535}), PortOwners::kNoOwner);
  EXPECT_TRUE(none.ports_of(0).empty());
}

class SnatPortsTest : public testing::Test {
 protected:
  static ConnTableConfig config() {
    ConnTableConfig c;
    c.capacity = 10'000;
    c.half_open_divisor = 1;
    return c;
  }
  /// Opens flow n with the port chosen for it. @return its entry; kNone: no port.
  EntryIndex open(std::uint32_t n, std::uint32_t hash = 0, std::uint8_t backend = 0x15) {
    auto flow = fullnat_flow<Ipv4>(n, 0);
    flow.reply.src = test::numbered_address<Ipv4>(0x0af40100u + backend);
    const auto choice = ports_.choose(t_.table(), flow.reply, hash, excluded_, t_.now());
    last_ = choice;
    if (choice.result == PortResult::kExhausted) {
      return EntryIndex::kNone;
    }
    flow.reply.dport = choice.port;
    return t_.created(flow);
  }
  void close_by_client(EntryIndex i) {
    t_.establish(i);
    t_.packet(i, Direction::kForward, kTcpFin | kTcpAck);
    t_.packet(i, Direction::kReply, kTcpFin | kTcpAck);
  }
  void close_by_backend(EntryIndex i) {
    t_.establish(i);
    t_.packet(i, Direction::kReply, kTcpFin | kTcpAck);
    t_.packet(i, Direction::kForward, kTcpFin | kTcpAck);
  }

  Under t_{Index{}, config()};
  SnatPorts ports_{PortOwners(50000, 50007, 1).ports_of(0)};
  PortSet excluded_;
  PortChoice last_;
};

// F33: all ports are found, the ninth flow is refused, closed ones can be used again.
TEST_F(SnatPortsTest, UsesEveryPortBeforeItGivesUp) {
  std::vector<EntryIndex> flows;
  std::set<std::uint16_t> used;
  for (std::uint32_t n = 0; n < 8; ++n) {
    flows.push_back(open(n, 3));
    ASSERT_NE(flows.back(), EntryIndex::kNone);
    used.insert(last_.port.host());
  }
  EXPECT_EQ(used.size(), 8u);
  EXPECT_EQ(open(8), EntryIndex::kNone);
  EXPECT_EQ(last_.result, PortResult::kExhausted);

  for (std::uint32_t n = 0; n < 4; ++n) {
    close_by_client(flows[n * 2]);
  }
  for (std::uint32_t n = 10; n < 14; ++n) {
    EXPECT_NE(open(n), EntryIndex::kNone);
    EXPECT_EQ(last_.result, PortResult::kFree);
  }
  EXPECT_EQ(open(14), EntryIndex::kNone);
}

TEST_F(SnatPortsTest, OnePortServesSeveralBackends) {
  for (std::uint32_t n = 0; n < 8; ++n) {
    ASSERT_NE(open(n, 0, 0x15), EntryIndex::kNone);
    ASSERT_NE(open(100 + n, 0, 0x16), EntryIndex::kNone);
  }
  EXPECT_EQ(t_.table().size(), 16u);
}

TEST_F(SnatPortsTest, SearchStartsAtTheHashOfTheFlow) {
  open(1, 5);
  EXPECT_EQ(last_.port.host(), 50005);
  open(2, 5);
  EXPECT_EQ(last_.port.host(), 50006);
}

// F17: a port of a frontend, a health check or a socket is never given.
TEST_F(SnatPortsTest, NeverGivesAnExcludedPort) {
  excluded_.insert(50003);
  excluded_.insert(50004);
  for (std::uint32_t n = 0; n < 6; ++n) {
    ASSERT_NE(open(n, 3), EntryIndex::kNone);
    EXPECT_FALSE(excluded_.contains(last_.port.host()));
  }
  EXPECT_EQ(open(6), EntryIndex::kNone);
}

TEST_F(SnatPortsTest, HeldPortIsLeftAloneWhileAnotherIsFree) {
  close_by_backend(open(0, 0));
  open(1, 0);
  EXPECT_EQ(last_.result, PortResult::kFree);
  EXPECT_EQ(last_.port.host(), 50001);
}

TEST_F(SnatPortsTest, LongestHeldPortIsReusedWhenOnlyHeldOnesAreLeft) {
  std::vector<EntryIndex> flows;
  for (std::uint32_t n = 0; n < 8; ++n) {
    flows.push_back(open(n, n));
  }
  close_by_backend(flows[6]);
  t_.advance_ms(1000);
  close_by_backend(flows[2]);

  EXPECT_NE(open(20), EntryIndex::kNone);

  EXPECT_EQ(last_.result, PortResult::kReusedHeld);
  EXPECT_EQ(last_.port.host(), 50006);
  EXPECT_EQ(t_.log.count(ReleaseReason::kReplyClash), 1u);
}

/// Connections for a minute to one backend from the ports of one address, in simulated time.
struct Load {
  std::uint64_t free = 0;
  std::uint64_t reused = 0;
  std::uint64_t refused = 0;
  std::uint64_t held_less_than_5s = 0;  ///< reused although it was held for less than that
};
template <class Close>
Load a_minute_of_connections(std::uint32_t a_second, std::uint16_t last_port, Close&& close) {
  ConnTableConfig config;
  config.capacity = 700'000;
  config.half_open_divisor = 1;
  Under t(Index{}, config);
  SnatPorts ports(PortOwners(1024, last_port, 1).ports_of(0));
  const PortSet excluded;
  Load load;
  for (std::uint32_t n = 0; n < 60 * a_second; ++n) {
    auto flow = fullnat_flow<Ipv4>(n, 0);
    const std::uint32_t hash = t.table().hash(flow.forward);
    const PortChoice choice = ports.choose(t.table(), flow.reply, hash, excluded, t.now());
    load.free += choice.result == PortResult::kFree ? 1 : 0;
    load.reused += choice.result == PortResult::kReusedHeld ? 1 : 0;
    load.held_less_than_5s += choice.held_for > ticks_of_ms(55'000) ? 1 : 0;
    flow.reply.dport = choice.port;
    const EntryIndex i =
        choice.result == PortResult::kExhausted ? EntryIndex::kNone : t.created(flow);
    load.refused += i == EntryIndex::kNone ? 1 : 0;
    if (i != EntryIndex::kNone) {
      close(t, i);
    }
    t.now_ns += 1'000'000'000 / a_second;
    t.table().expire(t.now(), t.log);
  }
  return load;
}

// 10,000 a second, and the client closes first: its ports are free at once.
TEST(SnatPortsLoad, ClientsThatCloseFirstNeverRunOutOfPorts) {
  const Load load = a_minute_of_connections(10'000, 65535, [](Under& t, EntryIndex i) {
    t.establish(i);
    t.packet(i, Direction::kForward, kTcpFin | kTcpAck);
    t.packet(i, Direction::kReply, kTcpFin | kTcpAck);
  });
  EXPECT_EQ(load.refused, 0u);
  EXPECT_EQ(load.reused, 0u);
  EXPECT_EQ(load.free, 600'000u);
}

// The backend closes first: each connection holds its port for 60 s, the pool lasts for 6.4 s. Then
// the longest held is used again, and no flow is refused. (A quarter of the ports and of the rate.)
TEST(SnatPortsLoad, BackendsThatCloseFirstMakeTheLongestHeldPortsBeReused) {
  const Load load = a_minute_of_connections(2500, 17151, [](Under& t, EntryIndex i) {
    t.establish(i);
    t.packet(i, Direction::kReply, kTcpFin | kTcpAck);
    t.packet(i, Direction::kForward, kTcpFin | kTcpAck);
  });
  EXPECT_EQ(load.refused, 0u);
  EXPECT_EQ(load.free, 16'128u);
  EXPECT_EQ(load.reused, 150'000u - 16'128u);
  EXPECT_EQ(load.held_less_than_5s, 0u);
}

TEST_F(SnatPortsTest, PreferredPortWinsOverAnEarlierFreeOne) {
  const auto flow = fullnat_flow<Ipv4>(1, 0);
  const auto low_bits_five = [](std::uint16_t port) { return (port & 7) == 5; };
  const auto choice = ports_.choose(t_.table(), flow.reply, 0, excluded_, t_.now(), low_bits_five);
  EXPECT_EQ(choice.port.host() & 7, 5);
  const auto never = [](std::uint16_t) { return false; };
  EXPECT_EQ(ports_.choose(t_.table(), flow.reply, 0, excluded_, t_.now(), never).result,
            PortResult::kFree);
}

TEST_F(SnatPortsTest, WorkerWithoutPortsHasNone) {
  SnatPorts none({});
  const auto flow = fullnat_flow<Ipv4>(1, 0);
  EXPECT_EQ(none.choose(t_.table(), flow.reply, 0, excluded_, t_.now()).result,
            PortResult::kExhausted);
}

TEST_F(SnatPortsTest, FullPoolOfManyPortsIsSearchedAFewAtATimeAfterAFullSearch) {
  SnatPorts many(PortOwners(20000, 23999, 1).ports_of(0));
  std::vector<EntryIndex> flows;
  for (std::uint32_t n = 0; n < 4000; ++n) {
    auto flow = fullnat_flow<Ipv4>(n, static_cast<std::uint16_t>(20000 + n));
    flows.push_back(t_.created(flow));
    t_.establish(flows.back());
  }
  const auto flow = fullnat_flow<Ipv4>(5000, 0);
  ASSERT_EQ(many.choose(t_.table(), flow.reply, 0, excluded_, t_.now()).result,
            PortResult::kExhausted);
  t_.table().remove(flows[3999], t_.log);

  int calls = 0;
  while (many.choose(t_.table(), flow.reply, 0, excluded_, t_.now()).result ==
         PortResult::kExhausted) {
    ASSERT_LT(++calls, 8) << "once around in pieces of kRetryPorts";
  }
  t_.advance_ms(20);
  EXPECT_EQ(many.choose(t_.table(), flow.reply, 0, excluded_, t_.now()).result, PortResult::kFree);
}

}  // namespace
}  // namespace sluice::core
