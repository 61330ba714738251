#pragma once

#include <array>
#include <cstdint>

#include "dataplane/core/conn/key_index.h"
#include "dataplane/core/net/parse.h"
#include "dataplane/pipeline/handover.h"
#include "dataplane/pipeline/packet.h"

namespace sluice::pipeline {

/// How many flows of each family, and others, a batch has so far.
struct BatchSizes {
  std::uint32_t flows4 = 0;
  std::uint32_t flows6 = 0;
  std::uint32_t others = 0;
};

/// Up to one burst of frames on their way through the stages. Frames are named by their place.
/// `flows4` and `flows6` list the places that hold a flow of that family, in order of arrival, so
/// that each family is served by a loop without a switch.
struct PacketBatch {
  static_assert(kBurst <= 64 && kBurst <= core::kMaxBulk);  // one bit of a word for each

  std::uint32_t size = 0;
  std::uint32_t flows4_size = 0;
  std::uint32_t flows6_size = 0;
  std::uint32_t others_size = 0;
  bool ask_steering = false;  ///< fresh from ports that bring much for other workers
  bool at_door = false;       ///< fresh from ports, in a flood
  std::uint64_t has_ports = 0;  ///< bit i: packet i is a fragment, `ports[i]` are its datagram's
  /// Bit i: packet i is not in the lists below yet. The others are flows another worker has parsed.
  std::uint64_t unparsed = 0;
  std::uint64_t opened = 0;     ///< bit i: packet i made its connection
  std::array<Packet, kBurst> packets;
  std::array<core::ParsedFrame, kBurst> parsed;
  std::array<Stage, kBurst> stages;
  std::array<FragmentPorts, kBurst> ports;
  std::array<std::uint16_t, kBurst> from;      ///< worker that sent it; all stages but kFresh
  std::array<AffinityAnswer, kBurst> answers;  ///< stage kPicked
  std::array<std::uint32_t, kBurst> hashes;    ///< of the key of each flow that was not found
  std::array<std::uint8_t, kBurst> flows4;
  std::array<std::uint8_t, kBurst> flows6;
  /// The key at flows4[k] or flows6[k], and its hash.
  std::array<const core::FlowKey4*, kBurst> keys4;
  std::array<const core::FlowKey6*, kBurst> keys6;
  std::array<std::uint32_t, kBurst> hashes4;
  std::array<std::uint32_t, kBurst> hashes6;
  std::array<std::uint8_t, kBurst> others;  ///< neither: fragments, ICMP, ARP, ...

  /// Bit of packet i in the sets above.
  [[nodiscard]] static constexpr std::uint64_t bit(std::size_t i) noexcept {
    return std::uint64_t{1} << i;
  }

  /// For n frames of which nothing is known yet.
  void open(std::size_t n) noexcept {
    size = static_cast<std::uint32_t>(n);
    has_ports = 0;
    unparsed = ~std::uint64_t{0};
    opened = 0;
    ask_steering = at_door = false;
    stages.fill(Stage::kFresh);  // of known size: two stores
    set_sizes({});
  }
  [[nodiscard]] BatchSizes sizes() const noexcept {
    return {flows4_size, flows6_size, others_size};
  }
  void set_sizes(const BatchSizes& sizes) noexcept {
    flows4_size = sizes.flows4;
    flows6_size = sizes.flows6;
    others_size = sizes.others;
  }
};

}  // namespace sluice::pipeline
