#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "dataplane/core/conn/entry.h"
#include "dataplane/pipeline/packet.h"
#include "dataplane/pipeline/path_mtu.h"
#include "dataplane/pipeline/spsc_ring.h"

namespace sluice::pipeline {

/// How far a packet has come in the owner procedure. It only grows, so nothing circles: a worker
/// hands a packet on only to a later stage.
enum class Stage : std::uint8_t {
  kFresh = 0,     ///< as it came from a port
  kFragment = 1,  ///< at the worker that collects the pieces of its datagram
  kOwner = 2,     ///< at the worker that owns the flow: no further question who that is
  kHome = 3,      ///< at the affinity home worker of its client
  kPicked = 4,    ///< back at the owner with the home worker's choice
};

/// Ports that the first fragment of a datagram gave to a later one.
struct FragmentPorts {
  core::Be16 sport;
  core::Be16 dport;
  std::uint8_t protocol = 0;
};

/// What a client's home worker says to the owner of its new flow.
struct AffinityAnswer {
  core::EndpointId picked = core::EndpointId::kNone;       ///< kNone: no endpoint under its tables
  core::EndpointIndex index = core::EndpointIndex::kNone;  ///< in the block of that generation
  std::uint64_t generation = 0;
};

/// A packet on its way to another worker, by value: what the sender found out goes along, so that
/// the receiver neither parses nor hashes a flow again. Two lines; other kinds than flows have only
/// the first, and are parsed anew.
struct alignas(64) HandoverMessage {
  Packet packet;
  Stage stage = Stage::kFresh;
  bool has_ports = false;  ///< `ports` come from the first fragment; not set when `ready`
  bool ready = false;      ///< a flow: `hash` and `parsed` are set
  FragmentPorts ports;
  std::uint16_t from = 0;  ///< worker that sent it
  std::uint32_t hash = 0;  ///< of the key; all tables of a group hash alike
  AffinityAnswer answer;   ///< stages kHome and kPicked
  core::ParsedFrame parsed;
};
static_assert(sizeof(HandoverMessage) == 128 && offsetof(HandoverMessage, parsed) == 64);

using HandoverRing = SpscRing<HandoverMessage>;
using PathMtuRing = SpscRing<PathMtu>;

/// One ring for each ordered pair of workers. Owned by the group, used by its workers.
class HandoverRings {
 public:
  /// @param ring_size  packets a ring can hold; 512 is 8 full bursts.
  explicit HandoverRings(std::size_t workers, std::size_t ring_size = 512)
      : workers_(workers), rings_(workers * workers), path_mtus_(workers * workers) {
    for (std::size_t from = 0; from < workers; ++from) {
      for (std::size_t to = 0; to < workers; ++to) {
        if (from != to) {
          rings_[from * workers + to] = std::make_unique<HandoverRing>(ring_size);
          path_mtus_[from * workers + to] = std::make_unique<PathMtuRing>(kPathMtus);
        }
      }
    }
  }

  /// What the rings of a group take: it grows with the square of the workers.
  [[nodiscard]] static constexpr std::size_t memory_bytes(std::size_t workers,
                                                          std::size_t ring_size) noexcept {
    const std::size_t pairs = workers * workers - workers;
    return pairs * (std::bit_ceil(ring_size) * sizeof(HandoverMessage) + sizeof(HandoverRing) +
                    kPathMtus * sizeof(PathMtu) + sizeof(PathMtuRing));
  }

  [[nodiscard]] std::size_t workers() const noexcept { return workers_; }
  /// Precondition: from != to, both below workers().
  [[nodiscard]] HandoverRing& ring(std::size_t from, std::size_t to) noexcept {
    return *rings_[from * workers_ + to];
  }
  /// What a worker learned about paths, for another one. As ring().
  [[nodiscard]] PathMtuRing& path_mtus(std::size_t from, std::size_t to) noexcept {
    return *path_mtus_[from * workers_ + to];
  }

 private:
  static constexpr std::size_t kPathMtus = 16;
  std::size_t workers_;
  std::vector<std::unique_ptr<HandoverRing>> rings_;
  std::vector<std::unique_ptr<PathMtuRing>> path_mtus_;
};

}  // namespace sluice::pipeline
