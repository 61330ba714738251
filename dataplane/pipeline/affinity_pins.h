#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "dataplane/core/fwd/decide.h"

namespace sluice::pipeline {

// Session affinity: which endpoint a client was sent to, and when
//
// A pin belongs to one client address and one service port, whatever the frontend, the protocol of
// another port or the client's port. It remembers the last endpoints and the time of the last
// new flow to each. A new flow goes to the first candidate with a use that has not expired
// under the Service's present time-out. An endpoint that takes no new flow by any path
// is forgotten when its client comes again, so it is not gone back to when it returns (A-4, F43).
// Switching affinity off, or deleting the service port, forgets all of it: each slot counts such
// changes, and a pin of an earlier count is none.
//
// Pins lie in sets of 8, chosen by a keyed hash; a new one takes the place of the oldest of its
// set. An endpoint is kept by address and port: ids and slots are used again for others.

/// Pins of one home worker. All memory is taken at construction. Thread: the owner worker.
class AffinityPins {
 public:
  /// @param pins   rounded up to a power of two; 128 bytes each.
  /// @param slots  service slots that can have affinity; others are never remembered.
  AffinityPins(std::uint32_t pins, std::uint32_t slots, std::uint64_t seed);

  /// @return kNone: no candidate of `decision` has a use that still counts.
  [[nodiscard]] core::EndpointIndex find(const core::Decision& decision,
                                         const core::IpAddress& client,
                                         std::uint64_t now_ns) noexcept;
  /// a new flow goes to `chosen`. @return true: the pin of another client made room.
  bool record(const core::Decision& decision, const core::IpAddress& client,
              core::EndpointIndex chosen, std::uint64_t now_ns) noexcept;
  /// To be called with every table the worker takes over, while the one before is still held.
  void see(const core::ForwardingTable& table) noexcept;

 private:
  using Stamp = std::uint32_t;  ///< nanoseconds >> kStampShift; wraps after two years
  static constexpr unsigned kStampShift = 24;
  static constexpr std::size_t kWays = 8;
  static constexpr std::size_t kUses = 4;

  struct Use {
    core::IpAddress address;
    std::uint16_t port = 0;
    Stamp last = 0;
  };
  struct alignas(64) Pin {
    core::IpAddress client;
    std::uint8_t count = 0;  ///< uses; 0: free
    core::ServiceSlot slot = core::ServiceSlot::kNone;
    std::uint32_t era = 0;
    Stamp last = 0;
    std::array<Use, kUses> uses{};
  };
  static_assert(sizeof(Pin) == 128);

  [[nodiscard]] static Stamp stamp(std::uint64_t now_ns) noexcept {
    return static_cast<Stamp>(now_ns >> kStampShift);
  }
  [[nodiscard]] std::uint32_t era(core::ServiceSlot slot) const noexcept;
  [[nodiscard]] Pin* set_of(core::ServiceSlot slot, const core::IpAddress& client) noexcept;
  [[nodiscard]] Pin* find_pin(core::ServiceSlot slot, const core::IpAddress& client) noexcept;

  std::vector<Pin> pins_;
  std::uint64_t seed_;
  std::vector<std::uint32_t> eras_;  ///< by slot; odd: the service port has affinity
  std::vector<const core::ForwardingTable::Page*> pages_;  ///< of the table seen last
};

}  // namespace sluice::pipeline
