#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "kni/nftables/plan.h"
#include "kni/nftables/ruleset.h"

namespace sluice::kni::nft {

// A set that is made without a size grows while it is filled, and until the kernel's worker has
// caught up each new element is looked for in long lists: two thirds of the kernel's work for
// 100,000 elements. One that is made with a size has its place from the beginning, is walked
// faster, and takes no more than that. So large sets get twice what they begin with; one that
// outgrows it is made anew.

/// Size to declare for a set that begins with so many elements; 0: none, it is small.
[[nodiscard]] std::uint32_t room_for(std::size_t elements) noexcept;

/// Whether so many elements have place in a set of that size.
[[nodiscard]] inline bool fits(std::size_t elements, std::uint32_t size) noexcept {
  return size == 0 || elements <= size;
}

/// Declares a size for each large set of `ruleset`.
void declare_sizes(Ruleset& ruleset);

/// How many elements the sets of one table have, and have place for. Pure bookkeeping.
class Rooms {
 public:
  Rooms() = default;
  /// The sets that were there before all is written anew; take() what is written then.
  explicit Rooms(const Ruleset& before);

  /// No set gets more than it has place for.
  [[nodiscard]] bool admit(const Plan& plan) const;
  /// The plan is in force.
  void take(const Plan& plan);

 private:
  struct Room {
    std::uint32_t size = 0;
    std::size_t used = 0;
  };
  [[nodiscard]] std::map<std::string, Room> after(const Plan& plan) const;

  std::map<std::string, Room> rooms_;
};

}  // namespace sluice::kni::nft
