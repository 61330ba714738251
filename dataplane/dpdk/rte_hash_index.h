#pragma once

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
// rte_hash adds and deletes keys; lookups read its memory directly (rte_hash_layout.h): the first
// bucket of each key, then the key slots, then the keys are compared. At millions of flows a packet
// is mostly waiting for those, so prefetch() asks for the bucket as soon as the hash is known, and
// it comes while the rest of the burst is parsed. A new key goes where there is room, and the slot
// of one to come is asked for. Where the layout is not known rte_hash does it all, slower.
//
// Memory is taken once: per slot 8 bytes of bucket, 4 of ring and 8 + key rounded up to 16. Filling
// the ring walks every slot, 2 to 3 ns each.

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
    const RteHashLayout layout =
        find_layout(hash->get(), request.name.c_str(), slots, sizeof(Key));
    return RteHashIndex(std::move(*hash), layout);
  }
  /// @param hash    empty.
  /// @param layout  find_layout() of it, or none.
  RteHashIndex(RteHashPtr hash, const RteHashLayout& layout) noexcept
      : hash_(std::move(hash)), layout_(layout) {}

  std::uint64_t find_bulk(const Key* const* keys, const std::uint32_t* hashes, std::uint32_t n,
                          core::KeyData* out) noexcept {
    if (!layout_) [[unlikely]] {
      return find_bulk_by_rte_hash(keys, hashes, n, out);
    }
    if (n == 1) {
      return layout_.find(*keys[0], hashes[0], out[0]) ? 1 : 0;
    }
    return layout_.find_bulk(keys, hashes, n, out);
  }

  /// The same by rte_hash, which needs no layout.
  std::uint64_t find_bulk_by_rte_hash(const Key* const* keys, const std::uint32_t* hashes,
                                      std::uint32_t n, core::KeyData* out) noexcept {
    std::uint64_t hits = 0;
    // The API lacks two consts; it writes neither keys nor hashes.
    rte_hash_lookup_with_hash_bulk_data(
        hash_.get(), reinterpret_cast<const void**>(const_cast<const Key**>(keys)),
        const_cast<std::uint32_t*>(hashes), n, &hits, &out[0].raw);
    return hits;
  }

  bool find(const Key& key, std::uint32_t hash, core::KeyData& out) noexcept {
    return layout_ ? layout_.find(key, hash, out)
                   : rte_hash_lookup_with_hash_data(hash_.get(), &key, hash, &out.raw) >= 0;
  }

  /// Asks for what a lookup of a key of this hash reads first.
  [[gnu::always_inline]] void prefetch(std::uint32_t hash) const noexcept {
    layout_.prefetch(hash);
  }

  /// Asks for what adding or erasing a key of this hash reads first.
  [[gnu::always_inline]] void prefetch_change(std::uint32_t hash) const noexcept {
    layout_.prefetch_both(hash);
  }

  /// Asks for the slots of the keys of this hash.
  [[gnu::always_inline]] void prefetch_key(std::uint32_t hash) const noexcept {
    layout_.prefetch_key(hash);
  }

  bool insert(const Key& key, std::uint32_t hash, core::KeyData data) noexcept {
    const std::uint32_t placed = layout_.roomier(hash);
    layout_.prefetch_slot(kSlotsAhead);
    return rte_hash_add_key_with_hash_data(hash_.get(), &key, placed, data.raw) == 0;
  }

  bool erase(const Key& key, std::uint32_t hash) noexcept {
    return rte_hash_del_key_with_hash(hash_.get(), &key, hash) >= 0;
  }

 private:
  /// So many keys before its turn a free slot is asked for: a few connections.
  static constexpr std::uint32_t kSlotsAhead = 8;

  RteHashPtr hash_;
  RteHashLayout layout_;
};

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

/// Everything one worker needs for one family, created together.
/// Errors: too little memory, with the number of bytes for index and entries.
template <class F>
struct ConnStore {
  using Table = core::ConnTable<F, RteHashIndex<typename F::Key>>;
  EntryMemory memory;
  Table table;

  [[nodiscard]] static constexpr std::size_t bytes(std::uint32_t connections) noexcept {
    return rte_hash_bytes(core::slots_for(connections), sizeof(typename F::Key)) +
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
