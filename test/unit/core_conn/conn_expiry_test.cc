#include <gtest/gtest.h>

#include "test/support/conn_fixture.h"
#include "test/support/map_index.h"

namespace sluice::core {
namespace {

using test::fullnat_flow;
using test::kSctp;
using test::kTcp;
using test::kUdp;
using test::nat_flow;
using Index = test::MapIndex<FlowKey4>;
using Under = test::TableUnderTest<Ipv4, Index>;

constexpr auto kForward = Direction::kForward;
constexpr auto kReply = Direction::kReply;
constexpr std::uint8_t kFinAck = kTcpFin | kTcpAck;

ConnTableConfig config(std::uint32_t capacity = 10'000) {
  ConnTableConfig c;
  c.capacity = capacity;
  c.hash_seed = 42;
  return c;
}

TEST(Expiry, HalfOpenEntryGoesExactlyAtItsTimeOut) {
  Under t(Index{}, config());
  t.created(nat_flow<Ipv4>(1));
  const Tick timeout = t.table().timeouts()[ConnState::kSynSent];
  const Tick start = t.now();
  t.table().expire(start + timeout - 1, t.log);
  EXPECT_EQ(t.log.count(), 0u);
  t.table().expire(start + timeout, t.log);
  EXPECT_EQ(t.log.count(ReleaseReason::kExpired), 1u);
}

TEST(Expiry, PacketOfAListedEntryMovesItBehindOlderOnes) {
  Under t(Index{}, config());
  const auto early = t.created(nat_flow<Ipv4>(1));
  t.advance_ms(1000);
  t.created(nat_flow<Ipv4>(2));
  t.advance_ms(1000);
  t.packet(early, kForward, kTcpSyn);
  const Tick timeout = t.table().timeouts()[ConnState::kSynSent];

  t.table().expire(t.now() - ticks_of_ms(1000) + timeout + 1, t.log);
  EXPECT_FALSE(t.table().find(nat_flow<Ipv4>(2).forward));
  EXPECT_TRUE(t.table().find(nat_flow<Ipv4>(1).forward));
  t.table().expire(t.now() + timeout, t.log);
  EXPECT_EQ(t.table().size(), 0u);
}

TEST(Expiry, SweepFindsIdleEstablishedFlowsWithinItsPeriod) {
  Under t(Index{}, config());
  for (std::uint32_t n = 0; n < 5000; ++n) {
    t.advance_ms(n % 4 == 0 ? 1 : 0);
    t.establish(t.created(nat_flow<Ipv4>(n)));
  }
  const std::uint64_t timeout_ms = 900'000;
  t.run_ms(timeout_ms - 2'000);
  EXPECT_EQ(t.table().size(), 5000u);
  t.run_ms(2'000 + Under::Table::kSweepSeconds * 1000 + 200);
  EXPECT_EQ(t.table().size(), 0u);
  EXPECT_EQ(t.log.count(ReleaseReason::kExpired), 5000u);
}

TEST(Expiry, TrafficKeepsAnEstablishedFlow) {
  Under t(Index{}, config());
  const auto i = t.created(nat_flow<Ipv4>(1));
  t.establish(i);
  for (int step = 0; step < 30; ++step) {
    t.run_ms(100'000);
    t.packet(i, step % 2 == 0 ? kForward : kReply, kTcpAck);
  }
  EXPECT_EQ(t.table().size(), 1u);
}

TEST(Expiry, TrafficKeepsAHalfClosedFlow) {
  Under t(Index{}, config());
  const auto i = t.created(nat_flow<Ipv4>(1));
  t.establish(i);
  t.packet(i, kForward, kFinAck);
  for (int step = 0; step < 10; ++step) {
    t.run_ms(100'000);
    t.packet(i, kReply, kTcpAck);
  }
  EXPECT_EQ(t.table().size(), 1u);
}

TEST(Expiry, OneCallReleasesABoundedNumber) {
  Under t(Index{}, config());
  for (std::uint32_t n = 0; n < 1000; ++n) {
    t.created(nat_flow<Ipv4>(n));
  }
  const Tick late = t.now() + t.table().timeouts()[ConnState::kSynSent];
  const std::uint32_t released = t.table().expire(late, t.log);
  EXPECT_LE(released, Under::Table::kExpireBatch + Under::Table::kSweepBatch);
  EXPECT_GE(released, Under::Table::kExpireBatch);
  while (t.table().size() != 0) {
    ASSERT_GT(t.table().expire(late, t.log), 0u) << "goes on at the same tick";
  }
}

TEST(Expiry, SurvivesTheWrapOfTheTick) {
  Under t(Index{}, config());
  t.now_ns = (std::uint64_t{0xffffffff} << kTickShift) - 1'000'000'000;
  t.settle();
  t.created(nat_flow<Ipv4>(1, kUdp));
  const auto stream = t.created(nat_flow<Ipv4>(2, kUdp));
  t.packet(stream, kReply, 0);
  t.run_ms(59'000);
  EXPECT_EQ(t.table().size(), 2u);
  t.run_ms(2'000);
  EXPECT_EQ(t.table().size(), 1u);
  t.run_ms(300'000);
  EXPECT_EQ(t.table().size(), 0u);
}

TEST(Expiry, NewTimeOutsHoldForExistingEntries) {
  Under t(Index{}, config());
  t.created(nat_flow<Ipv4>(1, kUdp));
  ConnTimeouts shorter;
  shorter[ConnState::kUdpNew] = ticks_of_ms(5'000);
  t.table().set_timeouts(shorter);
  t.run_ms(5'200);
  EXPECT_EQ(t.table().size(), 0u);
}

// A source port outlives a flow that fell silent: the backend may still know the tuple.
TEST(Hold, IdleSourceTranslatedTcpFlowKeepsItsPortForAMinute) {
  Under t(Index{}, config());
  const auto flow = fullnat_flow<Ipv4>(1, 5000);
  const auto i = t.created(flow);
  t.establish(i);
  t.run_ms(900'000 + 8'200);
  EXPECT_EQ(t.table().entry(i).state, ConnState::kHeld);
  EXPECT_GT(t.table().hold_left(i, t.now()), 0u);
  EXPECT_TRUE(t.table().reusable(i, kForward, kTcpSyn));
  t.run_ms(61'000);
  EXPECT_EQ(t.table().size(), 0u);
}

TEST(Hold, PortIsHeldOnlyWhenTheBackendClosedFirst) {
  Under t(Index{}, config());
  const auto client_first = t.created(fullnat_flow<Ipv4>(1, 5000));
  const auto backend_first = t.created(fullnat_flow<Ipv4>(2, 5001));
  const auto reset = t.created(fullnat_flow<Ipv4>(3, 5002));
  for (const auto i : {client_first, backend_first, reset}) {
    t.establish(i);
  }
  t.packet(client_first, kForward, kFinAck);
  t.packet(client_first, kReply, kFinAck);
  t.packet(backend_first, kReply, kFinAck);
  t.packet(backend_first, kForward, kFinAck);
  t.packet(reset, kForward, kTcpRst);

  EXPECT_EQ(t.table().hold_left(client_first, t.now()), 0u);
  EXPECT_EQ(t.table().hold_left(reset, t.now()), 0u);
  EXPECT_EQ(t.table().hold_left(backend_first, t.now()), ticks_of_ms(60'000));
}

// F15: whatever ends a flow, everything is given back; ten times the table through each ending.
class EveryEnding : public testing::TestWithParam<int> {};

TEST_P(EveryEnding, GivesEverythingBack) {
  Under t(Index{}, config(300));
  const std::uint32_t flows = t.table().capacity() * 10;
  for (std::uint32_t n = 0; n < flows; ++n) {
    const std::uint8_t proto = GetParam() == 6 ? kSctp : GetParam() == 5 ? kUdp : kTcp;
    auto flow = n % 2 == 0 ? nat_flow<Ipv4>(n, proto)
                           : fullnat_flow<Ipv4>(n, static_cast<std::uint16_t>(n), proto);
    if (GetParam() == 7) {
      t.table().index().refuse_next(static_cast<int>(n % 2) + 1);
    }
    const auto i = t.created(flow);
    if (i == EntryIndex::kNone) {
      ASSERT_TRUE(GetParam() == 7);
      t.table().index().refuse_next(0);
      continue;
    }
    switch (GetParam()) {
      case 0:  // FIN pair
        t.establish(i);
        t.packet(i, kForward, kFinAck);
        t.packet(i, kReply, kFinAck);
        break;
      case 1:  // RST
        t.packet(i, kReply, kTcpRst);
        break;
      case 2:  // half-open time-out
        break;
      case 3:  // idle time-out
        t.establish(i);
        if (t.table().size() == t.table().capacity()) {
          t.run_ms(910'000);
        }
        break;
      case 4:  // removed by the caller, pending or not
        t.table().set_state(i, n % 3 == 0 ? ConnState::kPending : ConnState::kSynReceived, t.now());
        t.table().remove(i, t.log);
        break;
      case 5:  // UDP stream
        t.packet(i, kReply, 0);
        if (t.table().size() == t.table().capacity()) {
          t.run_ms(310'000);
        }
        break;
      case 6:  // SCTP shutdown
        t.packet(i, kReply, sctp_signal(2));
        t.packet(i, kForward, sctp_signal(7));
        break;
      default:  // no place in the index
        break;
    }
  }
  t.run_ms(1'000'000);

  EXPECT_EQ(t.table().size(), 0u);
  EXPECT_EQ(t.table().half_open(), 0u);
  EXPECT_EQ(t.table().index().size(), 0u);
  for (std::size_t s = 0; s < kConnStates; ++s) {
    EXPECT_EQ(t.table().in_state_list(static_cast<ConnState>(s)), 0u);
  }
  if (GetParam() != 7) {
    EXPECT_EQ(t.log.count(), flows);
  }
  EXPECT_NE(t.created(nat_flow<Ipv4>(1)), EntryIndex::kNone);
}
INSTANTIATE_TEST_SUITE_P(Endings, EveryEnding, testing::Range(0, 8));

}  // namespace
}  // namespace sluice::core
