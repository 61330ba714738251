#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>

#include "bench/traffic.h"
#include "dataplane/core/conn/flow_hash.h"
#include "dataplane/core/net/rewrite.h"
#include "dataplane/dpdk/rte_hash_index.h"
#include "dataplane/pipeline/spsc_ring.h"
#include "dataplane/pipeline/steering_cache.h"

namespace sluice::bench {

// The bare probe: what a packet costs at the very least with this index. Reads the key without
// checking anything, hashes it, looks it up in bulk, reads one 64-byte entry, rewrites addresses,
// ports, checksums and MACs. No states, no counters, no time, no forwarding table.

template <class F>
struct alignas(64) ProbeEntry {
  typename F::Address src;
  typename F::Address dst;
  core::Be16 sport;
  core::Be16 dport;
  std::uint16_t l3_delta;
  std::uint16_t l4_delta;
  core::MacAddress dst_mac;
  core::MacAddress src_mac;
};
static_assert(sizeof(ProbeEntry<core::Ipv4>) == 64 && sizeof(ProbeEntry<core::Ipv6>) == 64);

/// Thread: one. Memory: two entries (forward, reply) for each flow, as directions have none.
template <class F>
class Probe {
 public:
  using Key = typename F::Key;

  [[nodiscard]] static core::Result<Probe> create(std::uint32_t flows) {
    // The EAL's names are the process's, and several probes may live at once.
    static std::uint32_t made = 0;
    const std::string name = (F::kFamily == core::Family::kIpv4 ? "probe4n" : "probe6n") +
                             std::to_string(made++);
    auto index = dpdk::make_rte_hash({name}, core::slots_for(flows), sizeof(Key));
    if (!index) {
      return tl::unexpected(index.error());
    }
    auto memory = dpdk::EntryMemory::allocate({name}, sizeof(ProbeEntry<F>) * flows * 2);
    if (!memory) {
      return tl::unexpected(memory.error());
    }
    return Probe(std::move(*index), std::move(*memory));
  }

  void add(std::uint32_t flow, const Key& forward, const Key& reply) noexcept {
    set(flow * 2, core::Translation<F>::between(forward, reply.reversed()));
    set(flow * 2 + 1, core::Translation<F>::between(reply, forward.reversed()));
    insert(forward, flow * 2);
    insert(reply, flow * 2 + 1);
  }

  /// The flow of a frame, rewritten to itself in both directions. @return false: no room.
  bool add_reflected(std::uint32_t flow, const std::uint8_t* frame) noexcept {
    Key key;
    read_key(frame, key);
    add(flow, key, key.reversed());
    return knows(frame);
  }

  [[nodiscard]] bool knows(const std::uint8_t* frame) noexcept {
    Key key;
    read_key(frame, key);
    const Key* pointer = &key;
    const std::uint32_t hashed = hash(key);
    void* hit = nullptr;
    return find_bulk(&pointer, &hashed, 1, &hit) != 0;
  }

  [[nodiscard]] static std::uint32_t hash(const Key& key) noexcept {
    return core::flow_hash(key, 1);
  }

  /// A packet on its way from a loop that received it to the one that has its flow.
  struct Handed {
    std::uint8_t* frame;
    std::uint32_t hash;
    Key key;
  };
  using Ring = pipeline::SpscRing<Handed>;

  /// One burst. @return packets found and rewritten.
  std::uint32_t run(const pipeline::Packet* packets, std::uint32_t n) noexcept {
    Burst burst;
    for (std::uint32_t i = 0; i < n; ++i) {
      read_key(packets[i].data, burst.keys[i]);
      burst.hashes[i] = hash(burst.keys[i]);
    }
    return serve(burst, n, [packets](std::size_t i) { return packets[i].data; });
  }

  /// The same in two loops. This one reads and hashes a key, and asks what is remembered of the
  /// flow, as a worker does, whose it is.
  /// @return packets of remembered flows; the others go there too.
  static std::uint32_t hand_over(const pipeline::Packet* packets, std::uint32_t n,
                                 const pipeline::SteeringCache& memory, Ring& ring) noexcept {
    Burst burst;
    for (std::uint32_t i = 0; i < n; ++i) {
      read_key(packets[i].data, burst.keys[i]);
      burst.hashes[i] = hash(burst.keys[i]);
      memory.prefetch(burst.hashes[i]);
    }
    std::uint32_t known = 0;
    for (std::uint32_t i = 0; i < n; ++i) {
      known += memory.find(burst.hashes[i]) != pipeline::SteeringCache::kNone ? 1 : 0;
      Handed* const to = ring.claim();
      if (to == nullptr) {
        break;
      }
      *to = {packets[i].data, burst.hashes[i], burst.keys[i]};
    }
    ring.publish();
    return known;
  }
  /// The other loop. @return packets found and rewritten, at most a burst.
  std::uint32_t take_over(Ring& ring) noexcept {
    Burst burst;
    std::array<std::uint8_t*, pipeline::kBurst> frames;
    std::uint32_t n = 0;
    ring.consume(pipeline::kBurst, [&](const Handed& handed) {
      frames[n] = handed.frame;
      burst.keys[n] = handed.key;
      burst.hashes[n++] = handed.hash;
    });
    return serve(burst, n, [&frames](std::size_t i) { return frames[i]; });
  }

 private:
  struct Burst {
    std::array<Key, pipeline::kBurst> keys;
    std::array<std::uint32_t, pipeline::kBurst> hashes;
  };

  Probe(dpdk::RteHashPtr index, dpdk::EntryMemory memory) noexcept
      : index_(std::move(index)),
        memory_(std::move(memory)),
        entries_(reinterpret_cast<ProbeEntry<F>*>(memory_.span().data())) {}

  template <class FrameOf>
  std::uint32_t serve(const Burst& burst, std::uint32_t n, FrameOf&& frame_of) noexcept {
    std::array<const Key*, pipeline::kBurst> pointers;
    std::array<void*, pipeline::kBurst> hits;
    for (std::uint32_t i = 0; i < n; ++i) {
      pointers[i] = &burst.keys[i];
    }
    const std::uint64_t found = find_bulk(pointers.data(), burst.hashes.data(), n, hits.data());
    for (std::uint64_t left = found; left != 0; left &= left - 1) {
      __builtin_prefetch(&entry_of(hits[std::countr_zero(left)]));
    }
    for (std::uint64_t left = found; left != 0; left &= left - 1) {
      const auto i = static_cast<std::size_t>(std::countr_zero(left));
      rewrite(frame_of(i), burst.keys[i].proto, entry_of(hits[i]));
    }
    return static_cast<std::uint32_t>(std::popcount(found));
  }

  // A key's data is the number of its entry, as rte_hash keeps it beside the key.
  void insert(const Key& key, std::uintptr_t entry) noexcept {
    rte_hash_add_key_with_hash_data(index_.get(), &key, hash(key), reinterpret_cast<void*>(entry));
  }
  std::uint64_t find_bulk(const Key* const* keys, const std::uint32_t* hashes, std::uint32_t n,
                          void** hits) const noexcept {
    std::uint64_t found = 0;
    // The API lacks two consts; it writes neither keys nor hashes.
    rte_hash_lookup_with_hash_bulk_data(
        index_.get(), reinterpret_cast<const void**>(const_cast<const Key**>(keys)),
        const_cast<std::uint32_t*>(hashes), n, &found, hits);
    return found;
  }
  const ProbeEntry<F>& entry_of(const void* hit) const noexcept {
    return entries_[reinterpret_cast<std::uintptr_t>(hit)];
  }
  void set(std::uint32_t at, const core::Translation<F>& to) noexcept {
    entries_[at] = {to.src, to.dst, to.sport, to.dport, to.l3.raw(), to.l4.raw(), {}, {}};
  }

  static void read_key(const std::uint8_t* frame, Key& key) noexcept {
    constexpr bool kV4 = F::kFamily == core::Family::kIpv4;
    const std::uint8_t* ip = frame + 14;
    std::memcpy(&key.src, ip + (kV4 ? 12 : 8), sizeof key.src + sizeof key.dst);
    std::memcpy(&key.sport, ip + (kV4 ? 20 : 40), 4);
    key.proto = ip[kV4 ? 9 : 6];
  }

  static void rewrite(std::uint8_t* frame, std::uint8_t proto, const ProbeEntry<F>& e) noexcept {
    constexpr bool kV4 = F::kFamily == core::Family::kIpv4;
    e.dst_mac.store(frame);
    e.src_mac.store(frame + 6);
    std::uint8_t* ip = frame + 14;
    std::uint8_t* l4 = ip + (kV4 ? 20 : 40);
    if constexpr (kV4) {
      core::decrement_ttl4(ip, core::ChecksumDelta(e.l3_delta));
    } else {
      core::decrement_hop_limit6(ip);
    }
    std::memcpy(ip + (kV4 ? 12 : 8), &e.src, sizeof e.src + sizeof e.dst);
    std::memcpy(l4, &e.sport, 4);
    std::uint8_t* sum = l4 + (proto == 6 ? 16 : 6);
    std::uint16_t field;
    std::memcpy(&field, sum, 2);
    field = core::ChecksumDelta(e.l4_delta).apply(field);
    std::memcpy(sum, &field, 2);
  }

  dpdk::RteHashPtr index_;
  dpdk::EntryMemory memory_;
  ProbeEntry<F>* entries_;
};

}  // namespace sluice::bench
