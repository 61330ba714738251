#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "dataplane/core/net/address.h"

namespace sluice::compile {

/// Addresses counted by users: one leaves with its last user (F62). Kept as one sorted list per
/// family; many changes between two looks cost one pass.
class CountedAddresses {
 public:
  void add(const core::IpAddress& address);
  void remove(const core::IpAddress& address);
  /// So many more will be added.
  void expect(std::size_t addresses) { counts_.reserve(counts_.size() + addresses); }
  /// Sorted and unique. Valid until the next change.
  [[nodiscard]] const std::vector<core::IpAddress>& of(core::Family family);
  /// True once after the set of addresses changed.
  bool take_changed() { return std::exchange(changed_, false); }
  void clear();

 private:
  struct Hash {
    std::size_t operator()(const core::IpAddress& address) const noexcept;
  };
  struct List {
    std::vector<core::IpAddress> sorted;
    std::vector<core::IpAddress> touched;  ///< came or left since `sorted` was made
  };
  [[nodiscard]] List& list(core::Family family) {
    return family == core::Family::kIpv4 ? v4_ : v6_;
  }
  std::unordered_map<core::IpAddress, std::uint32_t, Hash> counts_;
  List v4_;
  List v6_;
  bool changed_ = false;
};

}  // namespace sluice::compile
