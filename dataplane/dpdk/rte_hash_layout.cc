#include "dataplane/dpdk/rte_hash_layout.h"

#include <algorithm>
#include <array>
#include <string>

#include <rte_malloc.h>
#include <rte_memory.h>

#include "dataplane/core/net/flow_key.h"

namespace sluice::dpdk {
namespace {

/// The block of EAL's memory that `hash` points to and that has the size of its buckets.
/// @param ring  of its free slots, which in a small table has that size too.
const RteHashBucket* find_buckets(const rte_hash* hash, std::uint32_t slots,
                                  const rte_ring* ring) noexcept {
  const std::size_t wanted = std::size_t{slots} * (sizeof(RteHashBucket) / RteHashBucket::kKeys);
  constexpr std::size_t kSlack = 256;  // a remainder too small for a block of its own
  std::size_t size = 0;
  if (rte_malloc_validate(hash, &size) != 0) {
    return nullptr;
  }
  const auto* words = reinterpret_cast<const std::byte*>(hash);
  for (std::size_t at = 0; at + sizeof(void*) <= size; at += sizeof(void*)) {
    const void* candidate = nullptr;
    std::memcpy(&candidate, words + at, sizeof candidate);
    const bool aligned = reinterpret_cast<std::uintptr_t>(candidate) % 64 == 0;
    // Only what lies in EAL's memory may be asked about.
    if (candidate == nullptr || candidate == ring || !aligned ||
        rte_mem_virt2memseg(candidate, nullptr) == nullptr) {
      continue;
    }
    std::size_t block = 0;
    if (rte_malloc_validate(candidate, &block) == 0 && block >= wanted && block < wanted + kSlack) {
      return static_cast<const RteHashBucket*>(candidate);
    }
  }
  return nullptr;
}

/// A key of a trial.
struct TrialKey {
  std::array<std::byte, sizeof(core::FlowKey6)> bytes{};
  std::uint32_t hash = 0;

  TrialKey() = default;
  TrialKey(std::uint32_t number, std::uint32_t h) noexcept : hash(h) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<std::byte>(number * 37 + i);
    }
  }
  template <class Key>
  [[nodiscard]] Key as() const noexcept {
    Key key;
    std::memcpy(&key, bytes.data(), sizeof key);
    return key;
  }
  /// @return where lookups find it; negative: nowhere.
  std::int32_t add(rte_hash* to, std::uint32_t by) const noexcept {
    return rte_hash_add_key_with_hash(to, bytes.data(), by);
  }
};

/// A key added to an empty table by its hash in the other order, until it goes out of scope.
class Trial {
 public:
  Trial(rte_hash* hash, std::uint32_t number) noexcept
      : hash_(hash), key_(number, 0x9abc'1234 + number) {
    const std::int32_t added = key_.add(hash, other_order(key_.hash));
    added_ = added >= 0;
    const std::int32_t found = rte_hash_lookup_with_hash(hash, key_.bytes.data(), key_.hash);
    position_ = found == added ? found : -1;
  }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;
  ~Trial() {
    if (added_) {
      rte_hash_del_key_with_hash(hash_, key_.bytes.data(), other_order(key_.hash));
    }
  }

  [[nodiscard]] std::uint32_t hash() const noexcept { return key_.hash; }
  [[nodiscard]] std::uint32_t slot() const noexcept {
    return static_cast<std::uint32_t>(position_) + 1;
  }
  /// Found by its own hash, and lies there.
  [[nodiscard]] bool lies_in(const RteHashBucket& bucket) const noexcept {
    for (std::uint32_t i = 0; i < RteHashBucket::kKeys; ++i) {
      if (bucket.slots[i] == slot() && bucket.signatures[i] == key_.hash >> 16) {
        return position_ >= 0;
      }
    }
    return false;
  }
  /// Where the table keeps the key; nullptr: it is another one.
  [[nodiscard]] const std::byte* stored(std::size_t length) const noexcept {
    void* at = nullptr;
    // It complains that the key is not found by the table's own hash function.
    (void)rte_hash_get_key_with_position(hash_, position_, &at);
    return at != nullptr && std::memcmp(at, key_.bytes.data(), length) == 0
               ? static_cast<const std::byte*>(at)
               : nullptr;
  }

 private:
  rte_hash* hash_;
  TrialKey key_;
  bool added_ = false;
  std::int32_t position_ = -1;
};

/// Keys for a table that is empty again afterwards, in all the neighbourhoods there are.
template <class Key>
class Comparison {
 public:
  /// @param buckets  `slots` / RteHashBucket::kKeys of them.
  Comparison(rte_hash* hash, const RteHashLayout& layout, const RteHashBucket* buckets,
             std::uint32_t slots) noexcept
      : hash_(hash), layout_(layout), buckets_(buckets), slots_(slots) {
    for (std::uint32_t n = 0; n < kKeys; n += 2) {
      // The first ones share a first bucket and are moved from it; a signature is 0 where no key
      // is, too.
      const std::uint32_t mixed = (n + 1) * 0x9e37'79b9;
      const std::uint32_t sig = n < kCrowd     ? (mixed & 0xffff'0000) | 0x0321
                                : n == kCrowd ? mixed & 0xffff
                                              : mixed;
      keys_[n] = TrialKey(n, sig);
      // The next one has all of it but one byte, and the same hash.
      keys_[n + 1] = TrialKey(n, sig);
      keys_[n + 1].bytes[n / 2 * 5 % sizeof(Key)] ^= std::byte{1};
    }
  }

  /// Both say the same while the keys come and go. Leaves the table as it was.
  [[nodiscard]] bool agree() noexcept {
    bool same = said_the_same();
    for (std::uint32_t n = 0; n < kKeys; ++n) {
      const std::uint32_t sig = keys_[n].hash;
      const std::int32_t at = keys_[n].add(hash_, n % 3 == 0 ? other_order(sig) : sig);
      same = at >= 0 && slot_of(n) == static_cast<std::uint32_t>(at) + 1 && same;
      same = said_the_same() && same;
    }
    for (std::uint32_t n = 0; n < kKeys; ++n) {
      const TrialKey& key = keys_[n * 7 % kKeys];
      rte_hash_del_key_with_hash(hash_, key.bytes.data(), key.hash);
      same = said_the_same() && same;
    }
    return same;
  }

 private:
  static constexpr std::uint32_t kKeys = 40;
  static constexpr std::uint32_t kCrowd = 20;

  /// A lookup reads no slot beyond the last one.
  [[nodiscard]] bool slots_are_numbers() const noexcept {
    const std::uint32_t mask = slots_ / RteHashBucket::kKeys - 1;
    return std::all_of(keys_.begin(), keys_.end(), [&](const TrialKey& key) {
      const RteHashBucket& one = buckets_[key.hash & mask];
      const RteHashBucket& two = buckets_[other_order(key.hash) & mask];
      return std::max(*std::max_element(one.slots, one.slots + RteHashBucket::kKeys),
                      *std::max_element(two.slots, two.slots + RteHashBucket::kKeys)) < slots_;
    });
  }

  [[nodiscard]] bool said_the_same() const noexcept {
    if (!slots_are_numbers()) {
      return false;
    }
    for (std::uint32_t n = 0; n < kKeys; ++n) {
      const std::uint32_t slot = slot_of(n);
      if (layout_.find(keys_[n].as<Key>(), keys_[n].hash) != slot ||
          (slot != 0 && layout_.likely_slot(keys_[n].hash) == RteHashLayout::kNowhere)) {
        return false;
      }
    }
    return true;
  }

  /// What rte_hash says; 0: absent.
  [[nodiscard]] std::uint32_t slot_of(std::uint32_t n) const noexcept {
    const std::int32_t position =
        rte_hash_lookup_with_hash(hash_, keys_[n].bytes.data(), keys_[n].hash);
    return position < 0 ? 0 : static_cast<std::uint32_t>(position) + 1;
  }

  rte_hash* hash_;
  const RteHashLayout& layout_;
  const RteHashBucket* buckets_;
  std::uint32_t slots_;
  std::array<TrialKey, kKeys> keys_;
};

const rte_ring* find_free_slots(const char* name) noexcept {
  return rte_ring_lookup(("HT_" + std::string(name)).c_str());
}
std::uint32_t next_of(const rte_ring* ring) noexcept {
  const auto* elements = reinterpret_cast<const std::uint32_t*>(ring + 1);
  return ring == nullptr ? 0 : elements[ring->cons.head & ring->mask];
}

}  // namespace

RteHashLayout find_layout(rte_hash* hash, const char* name, std::uint32_t slots,
                          std::size_t key_length) noexcept {
  RteHashLayout layout;
  const rte_ring* ring = find_free_slots(name);
  const RteHashBucket* buckets = find_buckets(hash, slots, ring);
  const bool ours =
      key_length == sizeof(core::FlowKey4) || key_length == sizeof(core::FlowKey6);
  if (buckets == nullptr || !ours || rte_hash_count(hash) != 0) {
    return {};
  }
  layout.mask_ = slots / RteHashBucket::kKeys - 1;
  const std::uint32_t expected = next_of(ring);
  {
    const Trial one(hash, 1);
    const Trial two(hash, 2);
    const std::byte* const at_one = one.stored(key_length);
    const std::byte* const at_two = two.stored(key_length);
    if (!one.lies_in(buckets[layout.second(one.hash())]) ||
        !two.lies_in(buckets[layout.second(two.hash())]) || at_one == nullptr ||
        at_two == nullptr || two.slot() != one.slot() + 1 ||
        at_two < at_one + RteHashLayout::kKeyAt + key_length) {
      return {};
    }
    layout.buckets_ = buckets;
    layout.stride_ = static_cast<std::size_t>(at_two - at_one);
    layout.keys_ = at_one - RteHashLayout::kKeyAt - layout.stride_ * one.slot();
    layout.free_slots_ = expected == one.slot() ? ring : nullptr;
  }
  const bool agree = key_length == sizeof(core::FlowKey4)
                         ? Comparison<core::FlowKey4>(hash, layout, buckets, slots).agree()
                         : Comparison<core::FlowKey6>(hash, layout, buckets, slots).agree();
  return agree && rte_hash_count(hash) == 0 ? layout : RteHashLayout{};
}

}  // namespace sluice::dpdk
