#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <unordered_map>
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

/// Immutable set in shards: the next version shares every shard that did not change.
/// Thread: any.
class L4AddressSet {
 public:
  static constexpr std::size_t kShards = 256;
  /// Open addressing, power of two, load <= 1/2.
  struct Shard {
    std::vector<L4Address> cells;
  };
  [[nodiscard]] static std::size_t shard_of(std::uint64_t hash) noexcept { return hash >> 56; }
  [[nodiscard]] bool contains(const L4Address& a) const noexcept {
    const std::uint64_t hash = hash_of(a);
    const Shard* shard = shards_[shard_of(hash)].get();
    if (shard == nullptr) {
      return false;
    }
    const std::size_t mask = shard->cells.size() - 1;
    for (std::size_t at = hash & mask; shard->cells[at].port != 0; at = (at + 1) & mask) {
      if (shard->cells[at] == a) {
        return true;
      }
    }
    return false;
  }

 private:
  friend class L4AddressSetBuilder;
  std::array<std::shared_ptr<const Shard>, kShards> shards_{};
};

/// Counts the users of each address and makes sets of those that have any. Cost of freeze(): the
/// shards touched since the last one. Thread: the publisher.
class L4AddressSetBuilder {
 public:
  void add(const L4Address& a);
  /// Precondition: added before.
  void remove(const L4Address& a);
  [[nodiscard]] L4AddressSet freeze();
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  struct Hash {
    std::size_t operator()(const L4Address& a) const noexcept { return hash_of(a); }
  };
  using Users = std::unordered_map<L4Address, std::uint32_t, Hash>;
  std::array<Users, L4AddressSet::kShards> users_;
  std::array<bool, L4AddressSet::kShards> dirty_{};
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
