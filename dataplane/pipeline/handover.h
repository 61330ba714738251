#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
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
  kKnown = 1,     ///< at the worker that is remembered for its flow: sent back if not found there
  kReturned = 2,  ///< back where it came from: as fresh, but nobody's memory is asked
  kFragment = 3,  ///< at the worker that collects the pieces of its datagram
  kOwner = 4,     ///< at the worker that owns the flow: no further question who that is
  kHome = 5,      ///< at the affinity home worker of its client
  kPicked = 6,    ///< back at the owner with the home worker's choice
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

/// What a message says of its frame beside where it lies.
enum class HandoverContent : std::uint8_t {
  kNothing,  ///< to be parsed anew
  kPorts,    ///< a fragment and the ports of its datagram
  kFlow4,    ///< a flow as it was parsed, and its hash
  kFlow6,
};

/// A packet on its way to another worker, by value: what the sender found out goes along, so that
/// the receiver neither parses nor hashes a flow again. A flow of IPv4 takes the first line alone:
/// between two cores each line costs about as much as the work on the packet.
///
/// Packet and ParsedFrame are copied as they lie, in few and wide moves; what the message adds to
/// them lies in their padding.
struct alignas(64) HandoverMessage {
  static constexpr std::size_t kPacketBytes = offsetof(Packet, origin) + sizeof(Origin);
  static constexpr std::size_t kRestAt = offsetof(core::ParsedFrame, l3_offset);
  static constexpr std::size_t kRestBytes = sizeof(core::ParsedFrame) - kRestAt;

  std::array<std::byte, kPacketBytes> packet;  ///< a Packet without its padding
  Stage stage = Stage::kFresh;
  HandoverContent content = HandoverContent::kNothing;
  std::uint32_t hash = 0;  ///< of the key; all tables of a group hash alike
  core::FlowKey4 key4;     ///< kPorts: its ports and protocol alone
  /// Of the ParsedFrame of a flow: all behind its key, without its padding.
  std::array<std::byte, kRestBytes - sizeof(std::uint16_t)> rest;
  std::uint16_t from = 0;  ///< worker that sent it
  core::FlowKey6 key6;
  AffinityAnswer answer;  ///< stages kHome and kPicked

  /// First of all that is put.
  void put(const Packet& p) noexcept { std::memcpy(static_cast<void*>(this), &p, sizeof p); }
  void take(Packet& p) const noexcept { std::memcpy(&p, static_cast<const void*>(this), sizeof p); }
  /// Packet::data.
  [[nodiscard]] const std::uint8_t* frame() const noexcept {
    const std::uint8_t* data = nullptr;
    std::memcpy(&data, packet.data() + offsetof(Packet, data), sizeof data);
    return data;
  }
  void put(const FragmentPorts& ports) noexcept {
    content = HandoverContent::kPorts;
    key4.sport = ports.sport;
    key4.dport = ports.dport;
    key4.proto = ports.protocol;
  }
  [[nodiscard]] FragmentPorts ports() const noexcept {
    return {key4.sport, key4.dport, key4.proto};
  }
  /// Before `from`. Precondition: f is a flow.
  void put(const core::ParsedFrame& f, std::uint32_t key_hash) noexcept {
    hash = key_hash;
    std::memcpy(reinterpret_cast<std::byte*>(this) + offsetof(HandoverMessage, rest),
                reinterpret_cast<const std::byte*>(&f) + kRestAt, kRestBytes);
    if (f.kind == core::FrameKind::kFlow4) {
      content = HandoverContent::kFlow4;
      key4 = f.key4;
    } else {
      content = HandoverContent::kFlow6;
      key6 = f.key6;
    }
  }
  /// Precondition: content is kFlow4.
  void take4(core::ParsedFrame& f) const noexcept {
    take_rest(f);
    f.key4 = key4;
  }
  /// Precondition: content is kFlow6.
  void take6(core::ParsedFrame& f) const noexcept {
    take_rest(f);
    f.key6 = key6;
  }

 private:
  void take_rest(core::ParsedFrame& f) const noexcept {
    std::memcpy(reinterpret_cast<std::byte*>(&f) + kRestAt,
                reinterpret_cast<const std::byte*>(this) + offsetof(HandoverMessage, rest),
                kRestBytes);
  }
};
static_assert(sizeof(HandoverMessage) == 128 && offsetof(HandoverMessage, key6) == 64);
static_assert(offsetof(HandoverMessage, packet) == 0 &&
              offsetof(HandoverMessage, key4) == sizeof(Packet));
static_assert(offsetof(core::ParsedFrame, family) + sizeof(core::Family) <=
              sizeof(core::ParsedFrame) - sizeof(HandoverMessage::from));

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
