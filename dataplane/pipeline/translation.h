#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "dataplane/core/conn/entry.h"
#include "dataplane/core/net/rewrite.h"

namespace sluice::pipeline {

/// What forwarding by this entry writes into a packet of direction `d`, for nat and fullnat alike
/// (in nat one of the addresses keeps its value):
///   forward: source = snat, destination = backend      reply: source = vip, destination = client
///
/// The direction alternates from packet to packet, so it must not become a branch: it selects a
/// pair of fields by offset (each pair lies side by side) and turns the stored deltas round.
template <class F>
[[nodiscard]] inline core::Translation<F> translation_of(
    const typename core::HotEntryOf<F>::type& e, core::Direction d) noexcept {
  using Hot = typename core::HotEntryOf<F>::type;
  using Address = typename F::Address;
  constexpr std::size_t kPair = 2 * sizeof(Address);
  static_assert(offsetof(Hot, client) == 0 && offsetof(Hot, vip) == sizeof(Address) &&
                offsetof(Hot, backend) == kPair && offsetof(Hot, snat) == kPair + sizeof(Address));
  constexpr std::size_t kPorts = offsetof(Hot, client_port);
  static_assert(offsetof(Hot, vip_port) == kPorts + 2 &&
                offsetof(Hot, backend_port) == kPorts + 4 &&
                offsetof(Hot, snat_port) == kPorts + 6);
  const std::size_t forward = 1 - static_cast<std::size_t>(d);
  const auto* entry = reinterpret_cast<const std::uint8_t*>(&e);
  const std::uint8_t* pair = entry + forward * kPair;
  const std::uint8_t* ports = entry + kPorts + forward * 4;
  const auto turn = static_cast<std::uint16_t>(forward - 1);
  return {Address::load(pair + sizeof(Address)),
          Address::load(pair),
          core::Be16::load(ports + 2),
          core::Be16::load(ports),
          core::ChecksumDelta(static_cast<std::uint16_t>(e.l3_delta ^ turn)),
          core::ChecksumDelta(static_cast<std::uint16_t>(e.l4_delta ^ turn))};
}

}  // namespace sluice::pipeline
