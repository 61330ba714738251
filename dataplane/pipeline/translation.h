#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "dataplane/core/conn/entry.h"
#include "dataplane/core/net/rewrite.h"

namespace sluice::pipeline {

/// What forwarding by this entry writes into a packet of direction `d`, for nat and fullnat alike
/// (in nat one of the addresses keeps its value): the key of the other direction, turned round.
///   forward: source = snat, destination = backend      reply: source = vip, destination = client
/// The direction alternates from packet to packet, so it must not become a branch.
template <class F>
[[nodiscard]] inline core::Translation<F> translation_of(const core::HotEntry<F>& e,
                                                         core::Direction d) noexcept {
  const std::size_t other = 1 - static_cast<std::size_t>(d);
  const typename F::Key& key = e.keys[other];
  const auto turn = static_cast<std::uint16_t>(other - 1);
  return {key.dst,
          key.src,
          key.dport,
          key.sport,
          core::ChecksumDelta(static_cast<std::uint16_t>(e.l3_delta ^ turn)),
          core::ChecksumDelta(static_cast<std::uint16_t>(e.l4_delta ^ turn))};
}

}  // namespace sluice::pipeline
