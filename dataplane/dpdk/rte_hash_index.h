#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include <rte_hash.h>

#include "dataplane/core/conn/conn_table.h"
#include "dataplane/core/sink.h"
#include "dataplane/dpdk/rte_hash_layout.h"

namespace sluice::dpdk {

// Theory of operation
//
// rte_hash with no extra flags: one writer, no lock, no per-lcore cache of slots, keys in a fixed
// array. `entries = 2^k - 1`, because slot 0 is a dummy and 2^k entries would double the ring of
// free slots. Never EXT_TABLE (colliding keys would chain without bound).
//
// rte_hash adds and deletes keys; what a key leads to lies in an array of ours, by its slot.
// Lookups read rte_hash's memory directly (rte_hash_layout.h). find_likely() reads the first bucket
// of each key and that array, and no key: a slot of rte_hash is 32 or 64 bytes, so at millions of
// flows a key is a line from memory, and sixteen words of the array share one that mostly is in a
// cache. prefetch() asks for the bucket as soon as the hash is known, and it comes while the rest
// of the burst is parsed. A new key goes where there is room, and the slot of one to come is asked
// for. Where the layout is not known rte_hash does it all, slower.
//
// Memory is taken once: per slot 8 bytes of bucket, 4 of ring, 8 + key rounded up to 16, and 4 for
// what it leads to. Filling the ring walks every slot, 2 to 3 ns each.

/// Bytes that rte_hash takes for `slots` (a power of two) keys of `key_length` bytes. A few
/// kilobytes of fixed parts come on top. Source: rte_cuckoo_hash.c of DPDK 22.11.
[[nodiscard]] constexpr std::size_t rte_hash_bytes(std::uint32_t slots,
                                                   std::size_t key_length) noexcept {
  const std::size_t key_slot = (8 + key_length + 15) / 16 * 16;
  return std::size_t{slots} * (key_slot + 8 + 4);
}

/// Where memory comes from, for sizes and messages.
struct MemoryRequest {
  std::string name;        ///< unique in the process, at most 24 characters: "c4w0"
  int numa_socket = -1;    ///< -1: any
};

struct RteHashDeleter {
  void operator()(rte_hash* h) const noexcept { rte_hash_free(h); }
};
using RteHashPtr = std::unique_ptr<rte_hash, RteHashDeleter>;

/// Thread: main, after EAL init. Errors: too little memory, with the number of bytes needed.
[[nodiscard]] core::Result<RteHashPtr> make_rte_hash(const MemoryRequest& request,
                                                     std::uint32_t slots, std::size_t key_length);

struct RteFree {
  void operator()(std::byte* p) const noexcept;
};

/// Memory of arrays that workers index, huge pages where EAL has them.
class EntryMemory {
 public:
  /// @param what  it is for, in the message.
  /// Errors: too little memory, with the number of bytes needed. Thread: main, after EAL init.
  [[nodiscard]] static core::Result<EntryMemory> allocate(const MemoryRequest& request,
                                                          std::size_t bytes,
                                                          const char* what = "connection entries");
  [[nodiscard]] std::span<std::byte> span() const noexcept { return {data_.get(), size_}; }

 private:
  EntryMemory(std::byte* data, std::size_t size) noexcept : data_(data), size_(size) {}
  std::unique_ptr<std::byte, RteFree> data_;
  std::size_t size_ = 0;
};

/// Bytes of an index of `slots` (a power of two) keys of `key_length` bytes.
[[nodiscard]] constexpr std::size_t index_bytes(std::uint32_t slots,
                                                std::size_t key_length) noexcept {
  return rte_hash_bytes(slots, key_length) + std::size_t{slots} * sizeof(core::KeyData);
}

/// core::KeyIndex over rte_hash. Thread: the owner worker only, after creation.
template <class Key>
class RteHashIndex {
 public:
  /// @param connections  as in ConnTableConfig::capacity.
  [[nodiscard]] static core::Result<RteHashIndex> create(const MemoryRequest& request,
                                                         std::uint32_t connections) {
    const std::uint32_t slots = core::slots_for(connections);
    auto hash = make_rte_hash(request, slots, sizeof(Key));
    if (!hash) {
      return tl::unexpected(hash.error());
    }
    auto memory =
        EntryMemory::allocate(request, slots * sizeof(core::KeyData), "connection index");
    if (!memory) {
      return tl::unexpected(memory.error());
    }
    const RteHashLayout layout =
        find_layout(hash->get(), request.name.c_str(), slots, sizeof(Key));
    return RteHashIndex(std::move(*hash), std::move(*memory), layout);
  }
  /// @param hash    empty.
  /// @param memory  sizeof(core::KeyData) for each of its slots; content does not matter.
  /// @param layout  find_layout() of it, or none.
  RteHashIndex(RteHashPtr hash, EntryMemory memory, const RteHashLayout& layout) noexcept
      : hash_(std::move(hash)),
        memory_(std::move(memory)),
        data_(reinterpret_cast<core::KeyData*>(memory_.span().data())),
        layout_(layout) {}

  std::uint64_t find_likely(const Key* const* keys, const std::uint32_t* hashes, std::uint32_t n,
                            core::KeyData* out) noexcept {
    if (!layout_) [[unlikely]] {
      return find_by_rte_hash(keys, hashes, n, out);
    }
    std::array<std::uint32_t, core::kMaxBulk> slots;
    likely_slots(hashes, n, slots.data());
    std::uint64_t hits = 0;
    for (std::uint32_t i = 0; i < n; ++i) {
      const std::uint32_t slot = slots[i];
      if (slot != 0 && slot != RteHashLayout::kNowhere) [[likely]] {
        out[i] = data_[slot];
        hits |= std::uint64_t{1} << i;
      } else if (slot == 0 && find(*keys[i], hashes[i], out[i])) {
        hits |= std::uint64_t{1} << i;
      }
    }
    return hits;
  }

  bool find(const Key& key, std::uint32_t hash, core::KeyData& out) noexcept {
    // A position counts from the first slot that is somebody's.
    const std::uint32_t slot =
        layout_ ? layout_.find(key, hash)
                : static_cast<std::uint32_t>(
                      std::max(rte_hash_lookup_with_hash(hash_.get(), &key, hash), -1) + 1);
    if (slot == 0) {
      return false;
    }
    out = data_[slot];
    return true;
  }

  /// Asks for what a lookup of a key of this hash reads first.
  [[gnu::always_inline]] void prefetch(std::uint32_t hash) const noexcept {
    layout_.prefetch(hash);
  }

  /// Asks for what adding or erasing a key of this hash reads first.
  [[gnu::always_inline]] void prefetch_change(std::uint32_t hash) const noexcept {
    layout_.prefetch_both(hash);
  }

  /// Asks for what adding a key of this hash reads beyond its buckets.
  [[gnu::always_inline]] void prefetch_moves(std::uint32_t hash) const noexcept {
    layout_.prefetch_moves(hash);
  }

  /// Asks for the slots of the keys of this hash.
  [[gnu::always_inline]] void prefetch_key(std::uint32_t hash) const noexcept {
    layout_.prefetch_key(hash);
  }

  bool insert(const Key& key, std::uint32_t hash, core::KeyData data) noexcept {
    const std::uint32_t placed = layout_.roomier(hash);
    __builtin_prefetch(data_ + layout_.prefetch_slot(kSlotsAhead), 1);
    const std::int32_t position = rte_hash_add_key_with_hash(hash_.get(), &key, placed);
    if (position < 0) {
      return false;
    }
    data_[position + 1] = data;
    return true;
  }

  bool erase(const Key& key, std::uint32_t hash) noexcept {
    return rte_hash_del_key_with_hash(hash_.get(), &key, hash) >= 0;
  }

 private:
  /// So many keys before its turn a free slot is asked for: a few connections.
  static constexpr std::uint32_t kSlotsAhead = 8;

  /// Where keys of these hashes lie, as likely_slot() says. Asks for what they lead to.
  [[gnu::always_inline]] void likely_slots(const std::uint32_t* hashes, std::uint32_t n,
                                           std::uint32_t* slots) const noexcept {
    std::array<std::uint8_t, core::kMaxBulk> elsewhere;
    std::uint32_t elsewhere_size = 0;
    for (std::uint32_t i = 0; i < n; ++i) {
      slots[i] = layout_.likely_slot_in_first(hashes[i]);
      if (slots[i] == RteHashLayout::kNowhere) [[unlikely]] {
        layout_.prefetch_second(hashes[i]);
        elsewhere[elsewhere_size++] = static_cast<std::uint8_t>(i);
      } else {
        __builtin_prefetch(data_ + slots[i]);
      }
    }
    for (std::uint32_t k = 0; k < elsewhere_size; ++k) {
      const std::uint32_t i = elsewhere[k];
      slots[i] = layout_.likely_slot(hashes[i]);
      __builtin_prefetch(data_ + (slots[i] != RteHashLayout::kNowhere ? slots[i] : 0));
    }
  }

  /// The same by rte_hash, which needs no layout and compares keys.
  std::uint64_t find_by_rte_hash(const Key* const* keys, const std::uint32_t* hashes,
                                 std::uint32_t n, core::KeyData* out) const noexcept {
    std::array<std::int32_t, core::kMaxBulk> positions;
    // The API lacks two consts; it writes neither keys nor hashes.
    rte_hash_lookup_with_hash_bulk(hash_.get(),
                                   reinterpret_cast<const void**>(const_cast<const Key**>(keys)),
                                   const_cast<std::uint32_t*>(hashes), n, positions.data());
    std::uint64_t hits = 0;
    for (std::uint32_t i = 0; i < n; ++i) {
      if (positions[i] >= 0) {
        out[i] = data_[positions[i] + 1];
        hits |= std::uint64_t{1} << i;
      }
    }
    return hits;
  }

  RteHashPtr hash_;
  EntryMemory memory_;
  core::KeyData* data_;  ///< by slot
  RteHashLayout layout_;
};

/// Everything one worker needs for one family, created together.
/// Errors: too little memory, with the number of bytes for index and entries.
template <class F>
struct ConnStore {
  using Table = core::ConnTable<F, RteHashIndex<typename F::Key>>;
  EntryMemory memory;
  Table table;

  [[nodiscard]] static constexpr std::size_t bytes(std::uint32_t connections) noexcept {
    return index_bytes(core::slots_for(connections), sizeof(typename F::Key)) +
           Table::memory_bytes(connections);
  }

  [[nodiscard]] static core::Result<ConnStore> create(const MemoryRequest& request,
                                                      const core::ConnTableConfig& config) {
    auto memory = EntryMemory::allocate(request, Table::memory_bytes(config.capacity));
    if (!memory) {
      return tl::unexpected(memory.error());
    }
    auto index = RteHashIndex<typename F::Key>::create(request, config.capacity);
    if (!index) {
      return tl::unexpected(index.error());
    }
    const auto span = memory->span();
    return ConnStore{std::move(*memory), Table(config, std::move(*index), span)};
  }
};

}  // namespace sluice::dpdk
