#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "dataplane/core/fwd/forwarding_table.h"

namespace sluice::pipeline {

/// In which epoch a destination of a Service last left. An entry judged since then need not be judged
/// again, so that a change of one Service costs the flows of others one compare. Services share
/// places; one that shares with a changed one is judged once more than needed.
/// Thread: the publisher's until it is in a view, any afterwards.
class Departures {
 public:
  static constexpr std::size_t kPlaces = 4096;

  void note(core::ServiceSlot slot, std::uint32_t epoch) noexcept { places_[place(slot)] = epoch; }
  /// Of whatever flow: routes or next hops changed.
  void note_all(std::uint32_t epoch) noexcept { all_ = epoch; }

  /// Did something leave after `epoch`? May say so where nothing did (also once the epoch has gone
  /// half way round), never the other way.
  [[nodiscard]] bool since(core::ServiceSlot slot, std::uint32_t epoch) const noexcept {
    return is_later(all_, epoch) || is_later(places_[place(slot)], epoch);
  }

 private:
  static std::size_t place(core::ServiceSlot slot) noexcept {
    return static_cast<std::uint32_t>(slot) % kPlaces;
  }
  static bool is_later(std::uint32_t a, std::uint32_t b) noexcept {
    return static_cast<std::int32_t>(a - b) > 0;
  }

  std::uint32_t all_ = 0;
  std::array<std::uint32_t, kPlaces> places_{};
};

}  // namespace sluice::pipeline
