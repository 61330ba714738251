#include "dataplane/dpdk/rte_hash_index.h"

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rte_hash.h>
#include <rte_malloc.h>

#include "test/support/conn_model.h"
#include "test/support/eal_environment.h"

namespace sluice::dpdk {
namespace {

const auto* const kEal = testing::AddGlobalTestEnvironment(new test::EalEnvironment(600));

std::size_t heap_in_use() {
  rte_malloc_socket_stats stats{};
  rte_malloc_get_socket_stats(0, &stats);
  return stats.heap_allocsz_bytes;
}

template <class F>
void run_model(std::uint64_t seed, std::uint32_t capacity) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  auto index = RteHashIndex<typename F::Key>::create({"model"}, capacity);
  ASSERT_TRUE(index) << index.error().message;
  core::ConnTableConfig config;
  config.capacity = capacity;
  config.hash_seed = seed;
  test::ConnModelRun<F, RteHashIndex<typename F::Key>> model(std::move(*index), config, seed);
  model.run(4000);
}

TEST(RteHashIndex, TableOverItAgreesWithThePlainModel) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    run_model<core::Ipv4>(seed, 30);
    run_model<core::Ipv6>(seed, 30);
    run_model<core::Ipv4>(seed, 1000);
    run_model<core::Ipv6>(seed, 1000);
  }
}

template <class F>
void expect_bytes_per_connection(std::size_t budget) {
  constexpr std::uint32_t kAsked = 500'000;
  const std::size_t before = heap_in_use();
  auto store = ConnStore<F>::create({"budget"}, {.capacity = kAsked});
  ASSERT_TRUE(store) << store.error().message;
  const std::size_t taken = heap_in_use() - before;
  const std::uint32_t capacity = store->table.capacity();
  // What EAL adds to each piece (headers, alignment, the hash itself) is a fixed part.
  EXPECT_LE(taken, ConnStore<F>::bytes(kAsked) + 16'384);
  EXPECT_GE(taken, ConnStore<F>::bytes(kAsked));
  EXPECT_LE(static_cast<double>(taken) / capacity, static_cast<double>(budget));
}

TEST(ConnStore, Ipv4ConnectionCostsAtMost192BytesAllIncluded) {
  expect_bytes_per_connection<core::Ipv4>(192);
}

TEST(ConnStore, Ipv6ConnectionCostsAtMost320BytesAllIncluded) {
  expect_bytes_per_connection<core::Ipv6>(320);
}

/// Fills the table to its capacity with established flows: cuckoo hashing must find a place for
/// every one of them below the own limit.
template <class F>
void expect_fills_to_capacity() {
  auto store = ConnStore<F>::create({"fill"}, {.capacity = 100'000, .hash_seed = 7});
  ASSERT_TRUE(store) << store.error().message;
  test::ReleaseLog log;
  for (std::uint32_t n = 0; n < store->table.capacity(); ++n) {
    auto conn = test::nat_flow<F>(n);
    conn.forward_hash = store->table.hash(conn.forward);
    const auto outcome = store->table.create(conn, 1'000'000'000, log);
    ASSERT_EQ(outcome.result(), core::CreateResult::kCreated) << n;
    store->table.set_state(outcome.index(), core::ConnState::kEstablished, 1000);
  }
  for (std::uint32_t n = 0; n < store->table.capacity(); ++n) {
    ASSERT_TRUE(store->table.find(test::nat_flow<F>(n).reply));
  }
  EXPECT_EQ(log.count(), 0u);
}

TEST(ConnStore, TakesItsWholeCapacityIpv4) {
  expect_fills_to_capacity<core::Ipv4>();
}
TEST(ConnStore, TakesItsWholeCapacityIpv6) {
  expect_fills_to_capacity<core::Ipv6>();
}

TEST(ConnStore, TooLittleMemoryIsAnErrorThatNamesTheBytes) {
  const auto store = ConnStore<core::Ipv4>::create({"huge"}, {.capacity = 16'000'000});
  ASSERT_FALSE(store);
  EXPECT_NE(store.error().message.find("'huge'"), std::string::npos);
  EXPECT_NE(store.error().message.find(
                std::to_string(ConnStore<core::Ipv4>::Table::memory_bytes(16'000'000))),
            std::string::npos)
      << store.error().message;
}

// Not rules of rte_hash, but worth 60 cycles a packet and 1,000 a new flow: a DPDK that does it in
// another way is to be noticed.
TEST(RteHashLayout, IsFoundAndLeavesTheTableEmpty) {
  for (const std::size_t key_length : {16, 48}) {
    for (const std::uint32_t slots : {core::kMinSlots, 1u << 10, 1u << 20}) {
      const auto hash = make_rte_hash({"layout"}, slots, key_length);
      ASSERT_TRUE(hash);
      const RteHashLayout layout = find_layout(hash->get(), "layout", slots, key_length);
      EXPECT_TRUE(layout) << slots;
      EXPECT_TRUE(layout.knows_free_slots());
      EXPECT_EQ(rte_hash_count(hash->get()), 0);
    }
  }
}

TEST(RteHashLayout, IsNoneOfATableThatIsNotWhatItIsTakenFor) {
  const auto hash = make_rte_hash({"other"}, 1u << 10, 16);
  ASSERT_TRUE(hash);
  EXPECT_FALSE(find_layout(hash->get(), "other", 1u << 11, 16)) << "buckets of another size";
  EXPECT_FALSE(find_layout(hash->get(), "other", 1u << 10, 32)) << "keys that are not ours";
  EXPECT_EQ(rte_hash_count(hash->get()), 0);

  const core::FlowKey4 key{};
  ASSERT_EQ(rte_hash_add_key_with_hash_data(hash->get(), &key, 1, nullptr), 0);
  EXPECT_FALSE(find_layout(hash->get(), "other", 1u << 10, 16)) << "a table in use";
  EXPECT_EQ(rte_hash_count(hash->get()), 1);
}

TEST(RteHashLayout, IsNoneOfATableThatAnswersOtherwise) {
  const auto hash = make_rte_hash({"odd"}, 1u << 10, 16);
  ASSERT_TRUE(hash);
  rte_hash_set_cmp_func(hash->get(), [](const void*, const void*, std::size_t) { return 0; });
  EXPECT_FALSE(find_layout(hash->get(), "odd", 1u << 10, 16)) << "to it all keys are the same";
}

/// An index and rte_hash's own answers about the same table.
template <class Key>
class Compared {
 public:
  Compared(std::uint32_t slots, bool with_layout, std::uint32_t hash_mask)
      : slots_(slots), hash_mask_(hash_mask) {
    auto made = make_rte_hash({"compared"}, slots, sizeof(Key));
    hash_ = made->get();
    const RteHashLayout layout =
        with_layout ? find_layout(hash_, "compared", slots, sizeof(Key)) : RteHashLayout{};
    EXPECT_EQ(static_cast<bool>(layout), with_layout);
    auto memory = EntryMemory::allocate({"compared"}, slots * sizeof(core::KeyData));
    index_ = std::make_unique<RteHashIndex<Key>>(std::move(*made), std::move(*memory), layout);
  }

  /// Fills it to 95 % and empties it by half, `steps` keys in all, and compares lookups meanwhile.
  void run(std::uint32_t steps) {
    bool filling = true;
    for (std::uint32_t s = 0; s < steps && !testing::Test::HasFailure(); ++s) {
      filling = present_.size() < slots_ / 2 || (filling && present_.size() < limit());
      if (filling || random_() % 3 == 0) {
        add();
      } else {
        remove();
      }
      if (s % 8 == 0) {
        compare();
      }
    }
  }
  [[nodiscard]] std::size_t most() const { return most_; }
  /// Of what bulk lookups said.
  [[nodiscard]] std::size_t right() const { return right_; }
  [[nodiscard]] std::size_t mistaken() const { return mistaken_; }
  [[nodiscard]] std::size_t limit() const { return std::size_t{slots_} * 95 / 100; }

 private:
  static Key key_of(std::uint32_t number) {
    Key key{};
    key.proto = 6;
    key.sport = core::Be16::from_host(static_cast<std::uint16_t>(number));
    key.dport = core::Be16::from_host(static_cast<std::uint16_t>(number >> 16));
    return key;
  }
  /// Few signatures, so that many keys share one; 0 is one of them.
  [[nodiscard]] std::uint32_t hash_of(std::uint32_t number) const {
    return static_cast<std::uint32_t>(core::flow_hash(key_of(number), 3)) & hash_mask_;
  }
  static core::KeyData data_of(std::uint32_t number) {
    return core::KeyData::make(static_cast<core::EntryIndex>(number), core::Direction::kReply);
  }
  void add() {
    if (present_.size() >= limit()) {
      return;
    }
    const std::uint32_t number = next_++;
    if (index_->insert(key_of(number), hash_of(number), data_of(number))) {
      present_.push_back(number);
      most_ = std::max(most_, present_.size());
    }
  }
  void remove() {
    std::swap(present_[random_() % present_.size()], present_.back());
    const std::uint32_t number = present_.back();
    EXPECT_TRUE(index_->erase(key_of(number), hash_of(number)));
    present_.pop_back();
  }
  /// A burst of keys that are there, were there and never were.
  void compare() {
    std::array<Key, core::kMaxBulk> keys;
    std::array<const Key*, core::kMaxBulk> pointers;
    std::array<std::uint32_t, core::kMaxBulk> hashes;
    std::array<std::uint32_t, core::kMaxBulk> numbers;
    std::array<core::KeyData, core::kMaxBulk> found;
    const auto n = 1 + static_cast<std::uint32_t>(random_() % core::kMaxBulk);
    for (std::uint32_t i = 0; i < n; ++i) {
      const bool hit = !present_.empty() && random_() % 4 != 0;
      const std::uint32_t number = hit ? present_[random_() % present_.size()]
                                       : static_cast<std::uint32_t>(random_() % (next_ + 1000));
      numbers[i] = number;
      keys[i] = key_of(number);
      pointers[i] = &keys[i];
      hashes[i] = hash_of(number);
      index_->prefetch(hashes[i]);
    }
    const std::uint64_t likely = find_in_groups(pointers.data(), hashes.data(), n, found.data());
    for (std::uint32_t i = 0; i < n; ++i) {
      const bool known = rte_hash_lookup_with_hash(hash_, &keys[i], hashes[i]) >= 0;
      constexpr core::KeyData kUntouched{0x1234'5678};
      core::KeyData alone = kUntouched;
      ASSERT_EQ(index_->find(keys[i], hashes[i], alone), known);
      ASSERT_EQ(alone, known ? data_of(numbers[i]) : kUntouched);
      const bool said = (likely >> i & 1) != 0;
      ASSERT_TRUE(said || !known) << "what is there is never said to be absent";
      right_ += said && known && found[i] == alone ? 1 : 0;
      mistaken_ += said && !(known && found[i] == alone) ? 1 : 0;
    }
    ASSERT_EQ(n < core::kMaxBulk ? likely >> n : 0, 0u);
  }

  /// Of any size; the steps of one may lie between those of the others.
  std::uint64_t find_in_groups(const Key* const* keys, const std::uint32_t* hashes,
                               std::uint32_t n, core::KeyData* found) {
    core::KeyPlaces places;
    std::uint64_t likely = 0;
    std::uint32_t read = 0;
    for (std::uint32_t located = 0; located < n;) {
      const auto to = std::min(n, located + 1 + static_cast<std::uint32_t>(random_() % 64));
      index_->locate(hashes, located, to, places);
      located = to;
      if (located == n || random_() % 2 == 0) {
        likely |= index_->read(keys, hashes, read, located, places, found);
        read = located;
      }
    }
    const auto half = static_cast<std::uint32_t>(random_() % (n + 1));
    likely |= index_->read_late(keys, hashes, 0, half, places, found);
    return likely | index_->read_late(keys, hashes, half, n, places, found);
  }

  std::uint32_t slots_;
  std::uint32_t hash_mask_;
  rte_hash* hash_ = nullptr;
  std::unique_ptr<RteHashIndex<Key>> index_;
  std::mt19937_64 random_{7};
  std::vector<std::uint32_t> present_;
  std::uint32_t next_ = 0;
  std::size_t most_ = 0;
  std::size_t right_ = 0;
  std::size_t mistaken_ = 0;
};

template <class Key>
void expect_answers_of_rte_hash(bool with_layout) {
  constexpr std::uint32_t kAnyHash = 0xffff'ffff;
  // With 32 signatures a bucket holds many keys of one.
  constexpr std::uint32_t kFewSignatures = 0x001f'ffff;
  for (const std::uint32_t mask : {kAnyHash, kFewSignatures}) {
    for (const std::uint32_t slots : {core::kMinSlots, 1u << 12}) {
      Compared<Key> table(slots, with_layout, mask);
      table.run(slots * 5);
      if (mask == kAnyHash && slots > core::kMinSlots) {
        EXPECT_EQ(table.most(), table.limit()) << "keys have to be moved";
        EXPECT_LE(table.mistaken() * 1000, table.right()) << "hashes tell keys apart";
      }
      // rte_hash compares keys; where hashes alone decide, those of one signature get mixed up.
      if (!with_layout || mask == kFewSignatures) {
        EXPECT_EQ(table.mistaken() > 0, with_layout);
      }
    }
  }
}

TEST(RteHashIndex, FindsWhatRteHashFindsWhileKeysComeGoAndAreMoved) {
  expect_answers_of_rte_hash<core::FlowKey4>(true);
  expect_answers_of_rte_hash<core::FlowKey6>(true);
}

TEST(RteHashIndex, DoesTheSameByRteHashWhereTheLayoutIsNotKnown) {
  expect_answers_of_rte_hash<core::FlowKey4>(false);
  expect_answers_of_rte_hash<core::FlowKey6>(false);
}

TEST(RteHashLayout, HashInTheOtherOrderNamesTheSameKey) {
  const auto hash = make_rte_hash({"order"}, 1u << 20, 16);
  ASSERT_TRUE(hash);
  for (std::uint32_t n = 0; n < 10'000; ++n) {
    core::FlowKey4 key{};
    key.sport = core::Be16::from_host(static_cast<std::uint16_t>(n));
    const std::uint32_t sig = n * 0x9e37'79b9;
    EXPECT_EQ(other_order(other_order(sig)), sig);
    ASSERT_EQ(rte_hash_add_key_with_hash_data(hash->get(), &key, other_order(sig), nullptr), 0);
    ASSERT_GE(rte_hash_lookup_with_hash(hash->get(), &key, sig), 0);
    if (n % 2 == 0) {
      ASSERT_GE(rte_hash_del_key_with_hash(hash->get(), &key, sig), 0);
    }
  }
  EXPECT_EQ(rte_hash_count(hash->get()), 5'000);
}

TEST(ConnStore, NamesAreUnique) {
  const auto one = RteHashIndex<core::FlowKey4>::create({"same"}, 1000);
  const auto two = RteHashIndex<core::FlowKey4>::create({"same"}, 1000);
  ASSERT_TRUE(one);
  ASSERT_FALSE(two);
  EXPECT_NE(two.error().message.find("'same'"), std::string::npos);
}

TEST(ConnStore, GivesItsMemoryBack) {
  const std::size_t before = heap_in_use();
  { ASSERT_TRUE(ConnStore<core::Ipv6>::create({"back"}, {.capacity = 10'000})); }
  EXPECT_EQ(heap_in_use(), before);
}

}  // namespace
}  // namespace sluice::dpdk
