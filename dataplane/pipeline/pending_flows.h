#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "dataplane/core/conn/entry.h"
#include "dataplane/pipeline/handover.h"
#include "dataplane/pipeline/packet.h"

namespace sluice::pipeline {

/// New flows of one worker whose first packet is at their client's home worker. Later packets of
/// the flow wait here until that one is back. Bounded: 512 flows, in sets of 8 by their tuple, and
/// 8 packets for each. Thread: the owner worker.
class PendingFlows {
 public:
  static constexpr std::size_t kFlows = 512;
  static constexpr std::size_t kPackets = 8;  ///< design section 5
  /// An answer takes two polls of two workers; who has none after this has lost it on a full ring.
  static constexpr core::Tick kPatience = 96;  ///< about 100 ms

  struct Held {
    Packet packet;
    FragmentPorts ports;
    bool has_ports = false;  ///< `ports` come from the first fragment
  };
  struct Flow {
    core::FlowTuple tuple;
    core::Tick since = 0;
    bool used = false;
    bool answered = false;
    std::uint8_t count = 0;
    std::array<Held, kPackets> packets;
  };

  PendingFlows() : flows_(kFlows) {}

  [[nodiscard]] std::size_t used() const noexcept { return used_; }
  [[nodiscard]] std::size_t held() const noexcept { return held_; }

  /// @return nullptr: not pending.
  [[nodiscard]] Flow* find(const core::FlowTuple& tuple) noexcept;
  /// Precondition: not pending. @return nullptr: no room.
  [[nodiscard]] Flow* add(const core::FlowTuple& tuple, core::Tick now) noexcept;
  /// @return false: as many wait already; the caller keeps the packet.
  [[nodiscard]] bool hold(Flow& flow, const Held& packet) noexcept;
  /// The flow is pending no more; what waits comes out of take_answered(), which is to be emptied
  /// after every burst.
  void answer(Flow& flow) noexcept;

  /// Packets of one answered flow, in their order; the array is large enough for any flow.
  /// @return how many; 0: no answered flow is left.
  [[nodiscard]] std::size_t take_answered(std::array<Held, kPackets>& out) noexcept;

  /// Gives up the flows of the next `count` places that wait longer than kPatience.
  /// @param lost  called with each packet that waited
  template <class Lost>
  void expire(core::Tick now, std::size_t count, Lost&& lost) noexcept {
    for (std::size_t n = 0; n < count; ++n) {
      Flow& flow = flows_[sweep_];
      sweep_ = (sweep_ + 1) % kFlows;
      if (flow.used && now - flow.since >= kPatience) {
        give_up(flow, lost);
      }
    }
  }
  /// Gives up all of them.
  template <class Lost>
  void clear(Lost&& lost) noexcept {
    for (Flow& flow : flows_) {
      if (flow.used) {
        give_up(flow, lost);
      }
    }
  }

 private:
  static constexpr std::size_t kWays = 8;
  [[nodiscard]] Flow* set_of(const core::FlowTuple& tuple) noexcept;
  void free(Flow& flow) noexcept;
  template <class Lost>
  void give_up(Flow& flow, Lost& lost) noexcept {
    for (std::size_t k = 0; k < flow.count; ++k) {
      lost(flow.packets[k].packet);
    }
    free(flow);
  }

  std::vector<Flow> flows_;
  std::size_t used_ = 0;
  std::size_t held_ = 0;
  std::size_t sweep_ = 0;
  std::size_t answered_size_ = 0;
  std::array<Flow*, kBurst> answered_{};
};

}  // namespace sluice::pipeline
