#pragma once

#include <array>
#include <cstdint>

#include "dataplane/core/net/parse.h"
#include "dataplane/pipeline/handover.h"
#include "dataplane/pipeline/packet.h"

namespace sluice::pipeline {

/// Up to one burst of frames on their way through the stages. Frames are named by their place.
/// `flows4` and `flows6` list the places that hold a flow of that family, in order of arrival, so
/// that each family is served by a loop without a switch.
struct PacketBatch {
  std::uint32_t size = 0;
  std::uint32_t flows4_size = 0;
  std::uint32_t flows6_size = 0;
  std::uint32_t others_size = 0;
  std::uint32_t has_ports = 0;  ///< bit i: packet i is a fragment, `ports[i]` are its datagram's
  std::uint32_t opened = 0;     ///< bit i: packet i made its connection
  std::array<Packet, kBurst> packets;
  std::array<core::ParsedFrame, kBurst> parsed;
  std::array<Stage, kBurst> stages;
  std::array<FragmentPorts, kBurst> ports;
  std::array<std::uint16_t, kBurst> from;      ///< worker that sent it; stages kHome and kPicked
  std::array<AffinityAnswer, kBurst> answers;  ///< stage kPicked
  std::array<std::uint8_t, kBurst> flows4;
  std::array<std::uint8_t, kBurst> flows6;
  /// Hash of the key at flows4[k] or flows6[k].
  std::array<std::uint32_t, kBurst> hashes4;
  std::array<std::uint32_t, kBurst> hashes6;
  std::array<std::uint8_t, kBurst> others;  ///< neither: fragments, ICMP, ARP, ...
};

}  // namespace sluice::pipeline
