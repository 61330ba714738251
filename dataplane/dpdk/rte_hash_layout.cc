#include "dataplane/dpdk/rte_hash_layout.h"

#include <algorithm>
#include <array>
#include <string>

#include <rte_malloc.h>
#include <rte_memory.h>

namespace sluice::dpdk {
namespace {

/// The block of EAL's memory that `hash` points to and that has the size of its buckets.
const RteHashBucket* find_buckets(const rte_hash* hash, std::uint32_t slots) noexcept {
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
    if (candidate == nullptr || !aligned || rte_mem_virt2memseg(candidate, nullptr) == nullptr) {
      continue;
    }
    std::size_t block = 0;
    if (rte_malloc_validate(candidate, &block) == 0 && block >= wanted && block < wanted + kSlack) {
      return static_cast<const RteHashBucket*>(candidate);
    }
  }
  return nullptr;
}

/// A key added to an empty table by its hash in the other order, until it goes out of scope.
class Trial {
 public:
  Trial(rte_hash* hash, std::uint32_t number) noexcept : hash_(hash), sig_(0x9abc'1234 + number) {
    key_.fill(static_cast<std::byte>(number));
    added_ =
        rte_hash_add_key_with_hash_data(hash, key_.data(), other_order(sig_), nullptr) == 0;
    position_ = rte_hash_lookup_with_hash(hash, key_.data(), sig_);
  }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;
  ~Trial() {
    if (added_) {
      rte_hash_del_key_with_hash(hash_, key_.data(), other_order(sig_));
    }
  }

  /// Found by its own hash.
  [[nodiscard]] bool found() const noexcept { return position_ >= 0; }
  [[nodiscard]] std::uint32_t hash() const noexcept { return sig_; }
  [[nodiscard]] std::uint32_t slot() const noexcept {
    return static_cast<std::uint32_t>(position_) + 1;
  }
  [[nodiscard]] bool lies_in(const RteHashBucket& bucket) const noexcept {
    for (std::uint32_t i = 0; i < RteHashBucket::kKeys; ++i) {
      if (bucket.slots[i] == slot() && bucket.signatures[i] == sig_ >> 16) {
        return true;
      }
    }
    return false;
  }
  /// Where the table keeps the key; nullptr: it is another one.
  [[nodiscard]] const std::byte* stored(std::size_t length) const noexcept {
    void* at = nullptr;
    // It complains that the key is not found by the table's own hash function.
    (void)rte_hash_get_key_with_position(hash_, position_, &at);
    return at != nullptr && std::memcmp(at, key_.data(), length) == 0
               ? static_cast<const std::byte*>(at)
               : nullptr;
  }

 private:
  rte_hash* hash_;
  std::uint32_t sig_;
  std::array<std::byte, 64> key_;
  bool added_ = false;
  std::int32_t position_ = -1;
};

}  // namespace

RteHashLayout find_layout(rte_hash* hash, const char* name, std::uint32_t slots,
                          std::size_t key_length) noexcept {
  RteHashLayout layout;
  const RteHashBucket* buckets = find_buckets(hash, slots);
  const rte_ring* ring = rte_ring_lookup(("HT_" + std::string(name)).c_str());
  const auto next_free = [&] {
    const auto* elements = reinterpret_cast<const std::uint32_t*>(ring + 1);
    return ring == nullptr ? 0 : elements[ring->cons.head & ring->mask];
  };
  if (buckets == nullptr) {
    return layout;
  }
  const std::uint32_t expected = next_free();
  const Trial one(hash, 1);
  const Trial two(hash, 2);
  layout.mask_ = slots / RteHashBucket::kKeys - 1;
  for (const Trial* trial : {&one, &two}) {
    if (!trial->found() || !trial->lies_in(buckets[layout.second(trial->hash())])) {
      return {};
    }
  }
  layout.buckets_ = buckets;
  const std::byte* const at_one = one.stored(key_length);
  const std::byte* const at_two = two.stored(key_length);
  if (at_one == nullptr || at_two == nullptr || expected != one.slot() ||
      two.slot() != one.slot() + 1) {
    return layout;
  }
  layout.slots_ = ring;
  layout.stride_ = static_cast<std::size_t>(at_two - at_one);
  layout.keys_ = at_one - layout.stride_ * one.slot();
  return layout;
}

}  // namespace sluice::dpdk
