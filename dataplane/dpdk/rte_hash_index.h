#pragma once

#include <algorithm>
#include <array>
#include <bit>
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
// Lookups read rte_hash's memory directly (rte_hash_layout.h). A bulk lookup reads the first bucket
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

  /// Reads the first bucket of each key, where most are.
  [[gnu::always_inline]] void locate(const std::uint32_t* hashes, std::uint32_t from,
                                     std::uint32_t to, core::KeyPlaces& places) const noexcept {
    if (!layout_) [[unlikely]] {
      return;
    }
    for (std::uint32_t i = from; i < to; ++i) {
      const std::uint32_t slot = layout_.likely_slot_in_first(hashes[i]);
      places.at[i] = slot;
      if (slot == RteHashLayout::kNowhere) [[unlikely]] {
        layout_.prefetch_second(hashes[i]);
        places.late |= std::uint64_t{1} << i;
      } else {
        __builtin_prefetch(data_ + slot);
      }
    }
  }

  /// Reads what those lead to, and the second bucket of the others.
  [[gnu::always_inline]] std::uint64_t read(const Key* const* keys, const std::uint32_t* hashes,
                                            std::uint32_t from, std::uint32_t to,
                                            core::KeyPlaces& places, core::KeyData* out) noexcept {
    if (!layout_) [[unlikely]] {
      return find_by_rte_hash(keys, hashes, from, to, out);
    }
    std::uint64_t hits = 0;
    for (std::uint32_t i = from; i < to; ++i) {
      const std::uint32_t slot = places.at[i];
      if (slot != RteHashLayout::kNowhere) [[likely]] {
        hits |= read_one(*keys[i], hashes[i], slot, out[i]) << i;
      } else {
        places.at[i] = layout_.likely_slot(hashes[i]);
        __builtin_prefetch(data_ + (places.at[i] != RteHashLayout::kNowhere ? places.at[i] : 0));
      }
    }
    return hits;
  }

  /// Reads what those lead to.
  std::uint64_t read_late(const Key* const* keys, const std::uint32_t* hashes, std::uint32_t from,
                          std::uint32_t to, core::KeyPlaces& places, core::KeyData* out) noexcept {
    std::uint64_t hits = 0;
    const std::uint64_t asked = core::bits_below(to) & ~core::bits_below(from);
    for (std::uint64_t left = places.late & asked; left != 0; left &= left - 1) {
      const auto i = static_cast<std::uint32_t>(std::countr_zero(left));
      if (places.at[i] != RteHashLayout::kNowhere) {
        hits |= read_one(*keys[i], hashes[i], places.at[i], out[i]) << i;
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

  /// @param slot  likely_slot() of the hash, which is not kNowhere. @return 1: `out` is set.
  [[gnu::always_inline]] std::uint64_t read_one(const Key& key, std::uint32_t hash,
                                                std::uint32_t slot, core::KeyData& out) noexcept {
    if (slot == 0) [[unlikely]] {
      return find(key, hash, out) ? 1 : 0;
    }
    out = data_[slot];
    return 1;
  }

  /// The same by rte_hash, which needs no layout and compares keys.
  std::uint64_t find_by_rte_hash(const Key* const* keys, const std::uint32_t* hashes,
                                 std::uint32_t from, std::uint32_t to,
                                 core::KeyData* out) const noexcept {
    std::array<std::int32_t, core::kMaxBulk> positions;
    // The API lacks two consts; it writes neither keys nor hashes.
    rte_hash_lookup_with_hash_bulk(hash_.get(),
                                   reinterpret_cast<const void**>(
                                       const_cast<const Key**>(keys + from)),
                                   const_cast<std::uint32_t*>(hashes + from), to - from,
                                   positions.data());
    std::uint64_t hits = 0;
    for (std::uint32_t i = from; i < to; ++i) {
      if (positions[i - from] >= 0) {
        out[i] = data_[positions[i - from] + 1];
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
