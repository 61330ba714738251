#include "dataplane/core/conn/conn_table.h"

#include <gtest/gtest.h>

#include "test/support/conn_fixture.h"
#include "test/support/map_index.h"

namespace sluice::core {
namespace {

using test::fullnat_flow;
using test::kUdp;
using test::nat_flow;

template <class F>
class ConnTableTest : public testing::Test {
 protected:
  using Index = test::MapIndex<typename F::Key>;
  using Under = test::TableUnderTest<F, Index>;

  static ConnTableConfig config(std::uint32_t capacity) {
    ConnTableConfig c;
    c.capacity = capacity;
    c.hash_seed = 42;
    return c;
  }
  static Under make(std::uint32_t capacity = 1000) { return Under(Index{}, config(capacity)); }
};
using Families = testing::Types<Ipv4, Ipv6>;
TYPED_TEST_SUITE(ConnTableTest, Families);

TYPED_TEST(ConnTableTest, FindsBothDirectionsOfAConnection) {
  auto t = this->make();
  const auto flow = nat_flow<TypeParam>(1);
  const auto i = t.created(flow);
  ASSERT_NE(i, EntryIndex::kNone);

  const auto forward = t.table().find(flow.forward);
  const auto reply = t.table().find(flow.reply);

  EXPECT_EQ(forward.index, i);
  EXPECT_EQ(forward.direction, Direction::kForward);
  EXPECT_EQ(reply.index, i);
  EXPECT_EQ(reply.direction, Direction::kReply);
}

TYPED_TEST(ConnTableTest, EntryHoldsWhatCreateWasGiven) {
  auto t = this->make();
  auto flow = fullnat_flow<TypeParam>(7, 5000);
  flow.l3_delta = 0x1234;
  flow.l4_delta = 0x4321;
  flow.epoch = 9;
  flow.to_backend = static_cast<NextHopIndex>(3);
  flow.to_client = static_cast<NextHopIndex>(4);
  flow.service = static_cast<ServiceSlot>(11);

  const auto i = t.created(flow);
  const auto& e = t.table().entry(i);

  EXPECT_EQ(e.forward(), flow.forward);
  EXPECT_EQ(e.reply(), flow.reply);
  EXPECT_EQ(e.l3_delta, 0x1234);
  EXPECT_EQ(e.l4_delta, 0x4321);
  EXPECT_EQ(e.epoch, 9u);
  EXPECT_EQ(e.to_backend, static_cast<NextHopIndex>(3));
  EXPECT_EQ(e.to_client, static_cast<NextHopIndex>(4));
  EXPECT_EQ(e.service, static_cast<ServiceSlot>(11));
  EXPECT_EQ(e.state, ConnState::kSynSent);
  EXPECT_EQ(t.table().cold(i).created_ns, t.now_ns);
}

TYPED_TEST(ConnTableTest, SecondCreateOfAFlowSaysItExists) {
  auto t = this->make();
  const auto flow = nat_flow<TypeParam>(1);
  const auto i = t.created(flow);
  const auto again = t.create(flow);
  EXPECT_EQ(again.result(), CreateResult::kExists);
  EXPECT_EQ(again.index(), i);
  EXPECT_EQ(t.table().size(), 1u);
}

TYPED_TEST(ConnTableTest, BulkLookupMarksEachHitInGroupsOfAnySize) {
  auto t = this->make();
  std::vector<typename TypeParam::Key> keys;
  for (std::uint32_t n = 0; n < kMaxBulk; ++n) {
    const auto flow = nat_flow<TypeParam>(n);
    keys.push_back(n % 2 == 0 ? flow.forward : flow.reply);
    if (n % 3 == 0) {
      ASSERT_NE(t.created(flow), EntryIndex::kNone);
    }
  }
  const typename TypeParam::Key* pointers[kMaxBulk];
  std::uint32_t hashes[kMaxBulk];
  KeyData hits[kMaxBulk];
  for (std::uint32_t n = 0; n < kMaxBulk; ++n) {
    pointers[n] = &keys[n];
    hashes[n] = t.table().hash(keys[n]);
  }

  const std::uint64_t mask = t.table().find_bulk(pointers, hashes, kMaxBulk, hits);

  for (std::uint32_t n = 0; n < kMaxBulk; ++n) {
    ASSERT_EQ(mask >> n & 1, n % 3 == 0 ? 1u : 0u);
    if (n % 3 == 0) {
      EXPECT_EQ(hits[n].direction(), n % 2 == 0 ? Direction::kForward : Direction::kReply);
    }
  }

  for (const std::uint32_t group : {1u, 7u, 32u, 63u}) {
    KeyData again[kMaxBulk];
    const LookupPace pace{.group = group, .entries = group};
    ASSERT_EQ(t.table().find_likely(pointers, hashes, kMaxBulk, again, pace), mask) << group;
    for (std::uint32_t n = 0; n < kMaxBulk; n += 3) {
      EXPECT_EQ(again[n], hits[n]) << group;
    }
  }
}

// The lookup goes by hashes, of which two may begin alike.
TYPED_TEST(ConnTableTest, BulkLookupPutsKeysRightThatWereTakenForAnother) {
  auto t = this->make();
  const auto one = nat_flow<TypeParam>(1);
  const auto other = nat_flow<TypeParam>(2);
  const auto stranger = nat_flow<TypeParam>(3);
  ASSERT_NE(t.created(one), EntryIndex::kNone);
  const EntryIndex wanted = t.created(other);
  t.table().index().mistake_all_for(KeyData::make(wanted, Direction::kReply));
  const typename TypeParam::Key* keys[] = {&one.reply, &other.forward, &other.reply,
                                           &stranger.reply};
  std::uint32_t hashes[4];
  for (std::size_t n = 0; n < 4; ++n) {
    hashes[n] = t.table().hash(*keys[n]);
  }
  KeyData hits[4];

  EXPECT_EQ(t.table().find_likely(keys, hashes, 4, hits), 0b1111u);
  EXPECT_EQ(t.table().find_bulk(keys, hashes, 4, hits), 0b0111u);

  EXPECT_EQ(hits[0].direction(), Direction::kReply);
  EXPECT_NE(hits[0].entry(), wanted);
  EXPECT_EQ(hits[1], KeyData::make(wanted, Direction::kForward));
  EXPECT_EQ(hits[2], KeyData::make(wanted, Direction::kReply));
}

TYPED_TEST(ConnTableTest, EntryHasItsTwoKeysAndNoneThatDiffersInAByte) {
  auto t = this->make();
  for (const auto& flow : {nat_flow<TypeParam>(1), fullnat_flow<TypeParam>(2, 5000)}) {
    const auto& entry = t.table().entry(t.created(flow));
    for (const Direction d : {Direction::kForward, Direction::kReply}) {
      const auto& own = d == Direction::kForward ? flow.forward : flow.reply;
      const auto& opposite = d == Direction::kForward ? flow.reply : flow.forward;
      EXPECT_TRUE(entry.key(d) == own);
      EXPECT_FALSE(entry.key(d) == opposite);
      constexpr std::size_t kMeaning = offsetof(typename TypeParam::Key, proto) + 1;
      for (std::size_t byte = 0; byte < kMeaning; ++byte) {
        auto key = own;
        reinterpret_cast<std::uint8_t*>(&key)[byte] ^= 1;
        EXPECT_FALSE(entry.key(d) == key) << byte;
      }
    }
  }
}

TEST(KeyData, HoldsTheGreatestEntryOfAnyTable) {
  const auto last = static_cast<EntryIndex>(capacity_of_slots(kMaxSlots) - 1);
  for (const Direction d : {Direction::kForward, Direction::kReply}) {
    EXPECT_EQ(KeyData::make(last, d).entry(), last);
    EXPECT_EQ(KeyData::make(last, d).direction(), d);
  }
}

// One UDP socket, two VIPs, one backend: both flows would have the same reply key.
TYPED_TEST(ConnTableTest, ReplyKeyOfALiveFlowIsAClash) {
  auto t = this->make();
  const auto first = t.created(nat_flow<TypeParam>(1, kUdp));
  auto second = nat_flow<TypeParam>(1, kUdp);
  second.forward.dst = test::numbered_address<TypeParam>(0xcb00710b);

  const auto outcome = t.create(second);

  EXPECT_EQ(outcome.result(), CreateResult::kReplyClash);
  EXPECT_EQ(outcome.index(), first);
  EXPECT_EQ(t.table().size(), 1u);
  EXPECT_EQ(t.log.count(), 0u);
}

// F22: a closed entry never wins over a live flow that needs its reply key.
TYPED_TEST(ConnTableTest, ReplyKeyOfAFinishedFlowIsTakenOver) {
  auto t = this->make();
  const auto flow = nat_flow<TypeParam>(1);
  t.packet(t.created(flow), Direction::kReply, kTcpRst);
  auto second = nat_flow<TypeParam>(1);
  second.forward.dst = test::numbered_address<TypeParam>(0xcb00710b);

  const auto outcome = t.create(second);

  EXPECT_EQ(outcome.result(), CreateResult::kCreated);
  EXPECT_EQ(t.log.count(ReleaseReason::kReplyClash), 1u);
  EXPECT_FALSE(t.table().find(flow.forward));
  EXPECT_EQ(t.table().find(second.reply).index, outcome.index());
}

TYPED_TEST(ConnTableTest, HalfClosedFlowIsLiveForAClash) {
  auto t = this->make();
  const auto i = t.created(nat_flow<TypeParam>(1));
  t.establish(i);
  t.packet(i, Direction::kForward, kTcpFin | kTcpAck);
  auto second = nat_flow<TypeParam>(1);
  second.forward.dst = test::numbered_address<TypeParam>(0xcb00710b);
  EXPECT_EQ(t.create(second).result(), CreateResult::kReplyClash);
}

TYPED_TEST(ConnTableTest, FlowWhoseReplyIsItsRequestIsRefused) {
  auto t = this->make();
  auto flow = nat_flow<TypeParam>(1);
  flow.reply = flow.forward;
  EXPECT_EQ(t.create(flow).result(), CreateResult::kReplyClash);
  EXPECT_EQ(t.table().size(), 0u);
}

TYPED_TEST(ConnTableTest, DirectRoutingHasNoReplyKey) {
  auto t = this->make();
  auto flow = nat_flow<TypeParam>(1);
  flow.mode = ForwardingMode::kDr;
  const auto i = t.created(flow);
  EXPECT_TRUE(t.table().find(flow.forward));
  EXPECT_FALSE(t.table().find(flow.reply));
  t.table().remove(i, t.log);
  EXPECT_EQ(t.table().index().size(), 0u);
}

// F13, F4, F19: the caller removes a dangling or finished entry and creates with the same packet.
TYPED_TEST(ConnTableTest, SynOnAFinishedEntryIsScheduledAnewInTheSamePacket) {
  auto t = this->make();
  const auto flow = nat_flow<TypeParam>(1);
  const auto old = t.created(flow);
  t.establish(old);
  t.packet(old, Direction::kForward, kTcpFin | kTcpAck);
  EXPECT_FALSE(t.table().reusable(old, Direction::kForward, kTcpSyn));
  t.packet(old, Direction::kReply, kTcpFin | kTcpAck);
  ASSERT_TRUE(t.table().reusable(old, Direction::kForward, kTcpSyn));
  EXPECT_FALSE(t.table().reusable(old, Direction::kReply, kTcpSyn));

  t.table().remove(old, t.log);
  auto again = nat_flow<TypeParam>(1, test::kTcp, 0x0af40216);
  const auto fresh = t.created(again);

  ASSERT_NE(fresh, EntryIndex::kNone);
  EXPECT_EQ(t.table().find(flow.forward).index, fresh);
  EXPECT_FALSE(t.table().find(flow.reply));
}

TYPED_TEST(ConnTableTest, TheIndexThatIsFreeLastIsUsedNext) {
  auto t = this->make();
  const auto i = t.created(nat_flow<TypeParam>(1));
  t.table().remove(i, t.log);
  EXPECT_EQ(t.created(nat_flow<TypeParam>(2)), i);
}

TYPED_TEST(ConnTableTest, IndexWithoutPlaceLeavesNothingBehind) {
  auto t = this->make();
  const auto flow = nat_flow<TypeParam>(1);
  t.table().index().refuse_next(1);
  EXPECT_EQ(t.create(flow).result(), CreateResult::kFull);
  EXPECT_EQ(t.table().size(), 0u);
  EXPECT_EQ(t.table().index().size(), 0u);
  EXPECT_EQ(t.table().half_open(), 0u);
  EXPECT_EQ(t.create(flow).result(), CreateResult::kCreated);
}

TYPED_TEST(ConnTableTest, HalfOpenFlowsTakeNoMoreThanTheirShare) {
  auto t = this->make(1000);
  const auto limit = t.table().half_open_limit();
  EXPECT_EQ(limit, t.table().capacity() / 4);
  const auto first = nat_flow<TypeParam>(0);
  for (std::uint32_t n = 0; n < limit; ++n) {
    ASSERT_NE(t.created(nat_flow<TypeParam>(n)), EntryIndex::kNone);
    t.advance_ms(2);
  }
  EXPECT_TRUE(t.table().find(first.forward));

  ASSERT_NE(t.created(nat_flow<TypeParam>(limit)), EntryIndex::kNone);

  EXPECT_EQ(t.table().half_open(), limit);
  EXPECT_EQ(t.log.count(ReleaseReason::kEvictedHalfOpen), 1u);
  EXPECT_FALSE(t.table().find(first.forward)) << "the oldest is the victim";
}

TYPED_TEST(ConnTableTest, FullTableEvictsHalfOpenThenFinishedThenHalfClosedNeverEstablished) {
  auto t = this->make(1000);
  const std::uint32_t capacity = t.table().capacity();
  std::vector<EntryIndex> entries;
  for (std::uint32_t n = 0; n < capacity; ++n) {
    entries.push_back(t.created(nat_flow<TypeParam>(n)));
    t.establish(entries.back());
  }
  EXPECT_EQ(t.create(nat_flow<TypeParam>(capacity)).result(), CreateResult::kFull);
  EXPECT_EQ(t.table().size(), capacity);

  t.packet(entries[5], Direction::kForward, kTcpFin | kTcpAck);
  t.advance_ms(10);
  t.packet(entries[6], Direction::kForward, kTcpRst);

  ASSERT_NE(t.created(nat_flow<TypeParam>(capacity)), EntryIndex::kNone);
  EXPECT_FALSE(t.table().find(nat_flow<TypeParam>(6).forward));
  EXPECT_TRUE(t.table().find(nat_flow<TypeParam>(5).forward));
  ASSERT_NE(t.created(nat_flow<TypeParam>(capacity + 1)), EntryIndex::kNone);
  EXPECT_FALSE(t.table().find(nat_flow<TypeParam>(capacity).forward)) << "half-open goes first";
  EXPECT_TRUE(t.table().find(nat_flow<TypeParam>(5).forward));
}

// F14: idle established flows stay through a flood of half-open and UDP entries.
TYPED_TEST(ConnTableTest, EstablishedFlowsSurviveAFloodOfNewOnes) {
  auto t = this->make(10'000);
  std::vector<EntryIndex> established;
  for (std::uint32_t n = 0; n < 100; ++n) {
    established.push_back(t.created(nat_flow<TypeParam>(n)));
    t.establish(established.back());
  }
  for (std::uint32_t n = 100; n < 50'100; ++n) {
    ASSERT_NE(t.created(nat_flow<TypeParam>(n, n % 2 == 0 ? test::kTcp : kUdp)), EntryIndex::kNone);
  }
  for (std::uint32_t n = 0; n < 100; ++n) {
    EXPECT_EQ(t.table().find(nat_flow<TypeParam>(n).forward).index, established[n]);
  }
}

// F93: a dump of pages shows what lives through it exactly once, whatever comes and goes meanwhile.
TYPED_TEST(ConnTableTest, PagedDumpShowsEachLivingConnectionOnce) {
  auto t = this->make(1000);
  for (std::uint32_t n = 0; n < 300; ++n) {
    t.establish(t.created(nat_flow<TypeParam>(n)));
  }
  std::map<std::uint16_t, int> seen;
  std::uint32_t churn = 1000;
  for (std::uint32_t cursor = 0; cursor != t.table().kEndOfDump;) {
    cursor = t.table().visit_page(cursor, 16, [&](EntryIndex, const auto& hot, const auto&) {
      ++seen[hot.forward().sport.host()];
    });
    const auto gone = t.table().find(nat_flow<TypeParam>(churn - 1000).forward);
    t.table().remove(gone.index, t.log);
    t.created(nat_flow<TypeParam>(churn++));
  }
  const std::uint32_t removed = churn - 1000;
  for (std::uint32_t n = removed; n < 300; ++n) {
    EXPECT_EQ(seen[static_cast<std::uint16_t>(10000 + n)], 1);
  }
}

TYPED_TEST(ConnTableTest, DumpOfAnEmptyTableEnds) {
  auto t = this->make();
  EXPECT_EQ(t.table().visit_page(0, 10, [](EntryIndex, const auto&, const auto&) { FAIL(); }),
            t.table().kEndOfDump);
}

TYPED_TEST(ConnTableTest, HashDependsOnTheSeed) {
  auto a = this->make();
  auto config = this->config(1000);
  config.hash_seed = 43;
  typename TestFixture::Under b(typename TestFixture::Index{}, config);
  const auto key = nat_flow<TypeParam>(1).forward;
  EXPECT_NE(a.table().hash(key), b.table().hash(key));
}

}  // namespace
}  // namespace sluice::core
