#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "dataplane/core/net/address.h"

namespace sluice::pipeline {

// The steering book says where a packet belongs, never what happens to it (design section 5, owner
// rule). It knows every backend and every frontend of the current table and of each earlier one
// that still has connections. Frontends of the current table are in the table's own index; the book
// adds those that have left it.

/// One L4 address: a backend or a frontend.
struct L4Address {
  core::IpAddress address;
  std::uint16_t port = 0;  ///< host order; 0 marks an empty cell
  core::Protocol protocol = core::Protocol::kTcp;
  bool operator==(const L4Address&) const = default;
};

[[nodiscard]] inline std::uint64_t hash_of(const L4Address& a) noexcept {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  std::memcpy(&low, a.address.data(), 8);
  std::memcpy(&high, a.address.data() + 8, 8);
  std::uint64_t h = low * 0x9e3779b97f4a7c15ULL;
  h ^= std::rotl(h, 31) + high * 0xc2b2ae3d27d4eb4fULL;
  h ^= (std::uint64_t{a.port} << 8 | static_cast<std::uint8_t>(a.protocol)) * 0x165667b19e3779f9ULL;
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ULL;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebULL;
  return h ^ (h >> 31);
}

/// Immutable set in shards, the shards in groups: the next version copies a group for each that
/// changed and shares the rest, so a change costs about the same in a large set. At a million
/// addresses a shard holds 250. Thread: any.
class L4AddressSet {
 public:
  static constexpr unsigned kGroupBits = 6;
  static constexpr unsigned kShardBits = 6;  ///< of the shards of a group
  /// Open addressing, power of two, load <= 1/2; empty or with room.
  using Cells = std::vector<L4Address>;
  using Group = std::array<std::shared_ptr<const Cells>, std::size_t{1} << kShardBits>;

  /// 0 .. 2^(kGroupBits + kShardBits) - 1; the low kShardBits are the place in the group.
  [[nodiscard]] static std::size_t shard_of(std::uint64_t hash) noexcept {
    return hash >> (64 - kGroupBits - kShardBits);
  }
  [[nodiscard]] static std::size_t group_of(std::size_t shard) noexcept {
    return shard >> kShardBits;
  }
  [[nodiscard]] static std::size_t place_of(std::size_t shard) noexcept {
    return shard & ((std::size_t{1} << kShardBits) - 1);
  }

  [[nodiscard]] bool contains(const L4Address& a) const noexcept {
    const std::uint64_t hash = hash_of(a);
    const std::size_t shard = shard_of(hash);
    const Group* group = groups_[group_of(shard)].get();
    const Cells* cells = group == nullptr ? nullptr : (*group)[place_of(shard)].get();
    return cells != nullptr && (*cells)[find(*cells, hash, a)].port != 0;
  }

 private:
  friend class L4AddressSetBuilder;
  /// Where `a` is, or the empty cell where it would be put.
  [[nodiscard]] static std::size_t find(const Cells& cells, std::uint64_t hash,
                                        const L4Address& a) noexcept {
    const std::size_t mask = cells.size() - 1;
    std::size_t at = hash & mask;
    while (cells[at].port != 0 && !(cells[at] == a)) {
      at = (at + 1) & mask;
    }
    return at;
  }
  std::array<std::shared_ptr<const Group>, std::size_t{1} << kGroupBits> groups_{};
};

/// Counts the users of each address and makes sets of those that have any. It shares the cells of
/// its shards with the sets and copies a shard when it changes. Thread: the publisher.
class L4AddressSetBuilder {
 public:
  void add(const L4Address& a) { add(a, hash_of(a)); }
  /// As add() of each, for many: none waits for the memory of the one before.
  void add_all(const std::vector<L4Address>& all);
  /// For so many more to come. Many at once spread evenly: shards that grow step by step to the
  /// same size cost twice as much.
  void make_room(std::size_t more);
  /// Precondition: added before.
  void remove(const L4Address& a);
  [[nodiscard]] L4AddressSet freeze();
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  struct Shard {
    std::shared_ptr<L4AddressSet::Cells> cells;  ///< null: none
    std::vector<std::uint32_t> users;            ///< of the cell of the same index
    std::uint32_t used = 0;                      ///< cells
    bool dirty = false;                          ///< no set has these cells
  };
  void add(const L4Address& a, std::uint64_t hash);
  L4AddressSet::Cells& own_cells(std::size_t number);
  static void resize(Shard& shard, std::size_t cells);
  static void close_gap(Shard& shard, std::size_t gap);

  std::vector<Shard> shards_ =
      std::vector<Shard>(std::size_t{1} << (L4AddressSet::kGroupBits + L4AddressSet::kShardBits));
  std::vector<std::size_t> dirty_;  ///< numbers of the shards that are
  L4AddressSet current_;
  std::size_t size_ = 0;
};

struct SteeringBook {
  L4AddressSet backends;
  L4AddressSet departed_frontends;
  L4AddressSet service_addresses;  ///< as whole_address() makes them

  /// An address in a set that has no ports.
  static L4Address whole_address(const core::IpAddress& address) noexcept {
    return {address, 1, core::Protocol::kTcp};
  }
  /// True for cluster IPs, VIPs and announced addresses: nobody out there has one. An external IP
  /// that is not announced may be some host's own.
  [[nodiscard]] bool is_service_address(const core::IpAddress& address) const noexcept {
    return service_addresses.contains(whole_address(address));
  }
};

}  // namespace sluice::pipeline
