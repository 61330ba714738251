#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "dataplane/core/conn/entry.h"
#include "dataplane/pipeline/next_hop_directory.h"
#include "dataplane/pipeline/packet.h"

namespace sluice::pipeline {

/// Packets of one worker that wait until their neighbour is known. They are translated already and
/// only lack the Ethernet addresses. Bounded: 8 packets for each of 64 neighbours.
/// Thread: the owner worker.
class HopQueue {
 public:
  static constexpr std::size_t kPackets = 8;  ///< design section 5
  static constexpr std::size_t kNeighbours = 64;

  struct Waiting {
    PortIndex port = PortIndex::kNone;
    core::IpAddress address;
    core::Tick since = 0;
    std::uint32_t count = 0;  ///< 0: free
    std::array<Packet, kPackets> packets;
  };

  enum class Added : std::uint8_t {
    kFirst,  ///< the first one for this neighbour: somebody has to ask for it
    kYes,
    kFull,  ///< for this neighbour, or too many neighbours; the caller keeps the packet
  };
  [[nodiscard]] Added add(PortIndex port, const core::IpAddress& address, const Packet& packet,
                          core::Tick now) noexcept {
    Waiting* free = nullptr;
    for (Waiting& w : waiting_) {
      if (w.count == 0) {
        free = free == nullptr ? &w : free;
      } else if (w.port == port && w.address == address) {
        return append(w, packet);
      }
    }
    if (free == nullptr) {
      return Added::kFull;
    }
    free->port = port;
    free->address = address;
    free->since = now;
    append(*free, packet);
    return Added::kFirst;
  }

  /// Calls visit(Waiting&) -> bool for each neighbour; true: its packets were taken.
  template <class Visit>
  void release(Visit&& visit) noexcept {
    for (Waiting& w : waiting_) {
      if (w.count != 0 && visit(w)) {
        held_ -= w.count;
        w.count = 0;
      }
    }
  }

  [[nodiscard]] std::size_t held() const noexcept { return held_; }

 private:
  Added append(Waiting& w, const Packet& packet) noexcept {
    if (w.count == kPackets) {
      return Added::kFull;
    }
    w.packets[w.count++] = packet;
    ++held_;
    return Added::kYes;
  }
  std::array<Waiting, kNeighbours> waiting_{};
  std::size_t held_ = 0;
};

}  // namespace sluice::pipeline
