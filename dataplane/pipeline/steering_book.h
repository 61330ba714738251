#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
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

[[nodiscard]] std::uint64_t hash_of(const L4Address& a) noexcept;

/// Immutable set in shards: the next version shares every shard that did not change.
/// Thread: any.
class L4AddressSet {
 public:
  static constexpr std::size_t kShards = 256;
  /// Open addressing, power of two, load <= 1/2.
  struct Shard {
    std::vector<L4Address> cells;
  };
  [[nodiscard]] bool contains(const L4Address& a) const noexcept;

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
};

}  // namespace sluice::pipeline
