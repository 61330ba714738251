#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "dataplane/core/conn/entry.h"
#include "dataplane/core/net/rewrite.h"

namespace sluice::pipeline {

namespace detail {

/// Ports and deltas lie alike in entries of both families. The direction alternates from packet to
/// packet, so it must not become a branch: it selects a pair of ports by offset (each pair lies
/// side by side) and turns the stored deltas round.
template <class F, class Hot>
[[nodiscard]] inline core::Translation<F> with_ports(const Hot& e, std::size_t forward,
                                                     typename F::Address src,
                                                     typename F::Address dst) noexcept {
  constexpr std::size_t kPorts = offsetof(Hot, client_port);
  static_assert(offsetof(Hot, vip_port) == kPorts + 2 &&
                offsetof(Hot, backend_port) == kPorts + 4 &&
                offsetof(Hot, snat_port) == kPorts + 6);
  const std::uint8_t* ports = reinterpret_cast<const std::uint8_t*>(&e) + kPorts + forward * 4;
  const auto turn = static_cast<std::uint16_t>(forward - 1);
  return {src,
          dst,
          core::Be16::load(ports + 2),
          core::Be16::load(ports),
          core::ChecksumDelta(static_cast<std::uint16_t>(e.l3_delta ^ turn)),
          core::ChecksumDelta(static_cast<std::uint16_t>(e.l4_delta ^ turn))};
}

}  // namespace detail

/// What forwarding by this entry writes into a packet of direction `d`, for nat and fullnat alike
/// (in nat one of the addresses keeps its value):
///   forward: source = snat, destination = backend      reply: source = vip, destination = client
template <class F>
[[nodiscard]] inline core::Translation<F> translation_of(
    const typename core::HotEntryOf<F>::type& e, core::Direction d) noexcept {
  using Hot = typename core::HotEntryOf<F>::type;
  using Address = typename F::Address;
  const std::size_t forward = 1 - static_cast<std::size_t>(d);
  const auto* entry = reinterpret_cast<const std::uint8_t*>(&e);
  if constexpr (F::kFamily == core::Family::kIpv4) {
    constexpr std::size_t kAddress = sizeof(Address);
    static_assert(offsetof(Hot, client) == 0 && offsetof(Hot, vip) == kAddress &&
                  offsetof(Hot, backend) == 2 * kAddress && offsetof(Hot, snat) == 3 * kAddress);
    const std::uint8_t* pair = entry + forward * 2 * kAddress;
    return detail::with_ports<F>(e, forward, Address::load(pair + kAddress), Address::load(pair));
  } else {
    constexpr std::size_t kSrc[2] = {offsetof(Hot, vip), offsetof(Hot, snat)};
    constexpr std::size_t kDst[2] = {offsetof(Hot, client), offsetof(Hot, backend)};
    return detail::with_ports<F>(e, forward, Address::load(entry + kSrc[forward]),
                                 Address::load(entry + kDst[forward]));
  }
}

}  // namespace sluice::pipeline
