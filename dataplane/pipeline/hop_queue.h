#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "dataplane/core/conn/entry.h"
#include "dataplane/pipeline/next_hop_directory.h"
#include "dataplane/pipeline/packet.h"

namespace sluice::pipeline {

/// Packets of one worker that wait until their neighbour is known. They are translated already and
/// only lack the Ethernet addresses. Bounded: 8 packets for each of 64 neighbours that are vouched
/// for, and of 64 others. When those are all taken, the one that came first gives way to a new one,
/// so that addresses which never answer cannot hold the places.
/// Thread: the owner worker.
class HopQueue {
 public:
  static constexpr std::size_t kPackets = 8;  ///< design section 5
  static constexpr std::size_t kNeighbours = 64;

  struct Waiting {
    PortIndex port = PortIndex::kNone;
    bool vouched = false;
    core::IpAddress address;
    core::Tick since = 0;
    core::Tick ask_at = 0;    ///< when somebody has to ask for it (again)
    std::uint64_t order = 0;  ///< grows with each neighbour
    std::uint32_t count = 0;  ///< 0: free
    std::array<Packet, kPackets> packets;
  };

  /// @param evict  called with each packet of a neighbour that gives way.
  /// @return where the packet waits, with count 1 if it is the first one for this neighbour;
  ///         nullptr: too many wait for it already, the caller keeps the packet.
  template <class Evict>
  [[nodiscard]] Waiting* add(const ResolvedHop& hop, const Packet& packet, core::Tick now,
                             Evict&& evict) noexcept {
    Waiting* place = nullptr;  // free, or else the one that came first
    for (Waiting& w : waiting_[hop.vouched ? 1 : 0]) {
      if (w.count != 0 && w.port == hop.port && w.address == hop.via) {
        return append(w, packet);
      }
      if (place == nullptr || (place->count != 0 && (w.count == 0 || w.order < place->order))) {
        place = &w;
      }
    }
    for (std::uint32_t k = 0; k < place->count; ++k) {
      evict(place->packets[k]);
    }
    held_ -= place->count;
    place->port = hop.port;
    place->vouched = hop.vouched;
    place->address = hop.via;
    place->since = now;
    place->ask_at = now;
    place->order = ++last_order_;
    place->count = 0;
    return append(*place, packet);
  }

  /// Calls visit(Waiting&) -> bool for each neighbour; true: its packets were taken.
  template <class Visit>
  void release(Visit&& visit) noexcept {
    for (auto& half : waiting_) {
      for (Waiting& w : half) {
        if (w.count != 0 && visit(w)) {
          held_ -= w.count;
          w.count = 0;
        }
      }
    }
  }

  [[nodiscard]] std::size_t held() const noexcept { return held_; }

 private:
  Waiting* append(Waiting& w, const Packet& packet) noexcept {
    if (w.count == kPackets) {
      return nullptr;
    }
    w.packets[w.count++] = packet;
    ++held_;
    return &w;
  }
  std::array<std::array<Waiting, kNeighbours>, 2> waiting_{};  ///< [1]: vouched for
  std::uint64_t last_order_ = 0;
  std::size_t held_ = 0;
};

}  // namespace sluice::pipeline
