#pragma once

#include "dataplane/core/conn/entry.h"
#include "dataplane/core/net/rewrite.h"

namespace sluice::pipeline {

/// What forwarding by this entry writes into a packet of direction `d`, for nat and fullnat alike
/// (in nat one of the addresses keeps its value):
///   forward: source = snat, destination = backend      reply: source = vip, destination = client
/// The direction selects fields and turns the stored deltas round; there is no branch.
template <class F>
[[nodiscard]] inline core::Translation<F> translation_of(
    const typename core::HotEntryOf<F>::type& e, core::Direction d) noexcept {
  const bool forward = d == core::Direction::kForward;
  const auto turn = static_cast<std::uint16_t>(0u - static_cast<std::uint32_t>(d));
  const auto turned = [turn](std::uint16_t delta) {
    return core::ChecksumDelta(static_cast<std::uint16_t>(delta ^ turn));
  };
  const auto* src = forward ? &e.snat : &e.vip;
  const auto* dst = forward ? &e.backend : &e.client;
  const core::Be16* sport = forward ? &e.snat_port : &e.vip_port;
  const core::Be16* dport = forward ? &e.backend_port : &e.client_port;
  return {*src, *dst, *sport, *dport, turned(e.l3_delta), turned(e.l4_delta)};
}

}  // namespace sluice::pipeline
