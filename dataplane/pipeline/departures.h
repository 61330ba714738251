#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "dataplane/core/fwd/forwarding_table.h"

namespace sluice::pipeline {

/// In which epoch destinations left, by Service and by endpoint: of UDP, other flows keep theirs
/// (M-8) and ask when they are opened anew. An entry judged since then need not be judged again, so
/// that a change costs the flows of what did not leave a compare or two: they are most flows of the
/// Service that changed, too. Services share places, and so do endpoints; one that shares both with
/// what left is judged once more than needed.
/// Thread: the publisher's until it is in a view, any afterwards.
class Departures {
 public:
  static constexpr std::size_t kPlaces = 4096;

  /// An endpoint left its Service or serves no more, or the Service left.
  void note(core::ServiceSlot slot, core::EndpointId endpoint, std::uint32_t epoch) noexcept {
    services_[place(slot)] = epoch;
    endpoints_[place(endpoint)] = epoch;
  }
  /// Of whatever flow: routes or next hops changed.
  void note_all(std::uint32_t epoch) noexcept { all_ = epoch; }

  /// Did what the flow goes to leave after `epoch`, or the way there? May say so where nothing did
  /// (also once the epoch has gone half way round), never the other way.
  [[nodiscard]] bool since(core::ServiceSlot slot, core::EndpointId endpoint,
                           std::uint32_t epoch) const noexcept {
    // The endpoint first: of those that are asked about nearly all stay.
    return ways_since(epoch) || (is_later(endpoints_[place(endpoint)], epoch) &&
                                 is_later(services_[place(slot)], epoch));
  }
  /// Did routes or next hops change after `epoch`?
  [[nodiscard]] bool ways_since(std::uint32_t epoch) const noexcept {
    return is_later(all_, epoch);
  }

 private:
  template <class Id>
  static std::size_t place(Id id) noexcept {
    return static_cast<std::uint32_t>(id) % kPlaces;
  }
  static bool is_later(std::uint32_t a, std::uint32_t b) noexcept {
    return static_cast<std::int32_t>(a - b) > 0;
  }

  std::uint32_t all_ = 0;
  std::array<std::uint32_t, kPlaces> services_{};
  std::array<std::uint32_t, kPlaces> endpoints_{};
};

}  // namespace sluice::pipeline
