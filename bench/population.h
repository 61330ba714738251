#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/rig.h"
#include "bench/traffic.h"

namespace sluice::bench {

/// Connections that were opened through a Rig (or another Via with its poll(), out(), counters())
/// by whole handshakes, and the frames of both their directions. Which backend and source port a
/// flow got is read from the frames the worker sent, as a backend would.
template <class F, class Via = Rig>
class Population {
 public:
  using Key = typename F::Key;

  Population(Via& via, std::uint32_t flows, core::Protocol protocol = core::Protocol::kTcp)
      : Population(via, FlowSpace<F>{flows, 1, static_cast<std::uint8_t>(protocol)}) {}
  Population(Via& via, const FlowSpace<F>& space)
      : via_(via), space_(space), shuffle_(space.flows), reply_(space.flows) {}

  /// Errors: what did not come through, with the counters.
  [[nodiscard]] core::Result<void> open_all() {
    for (std::uint32_t first = 0; first < space_.flows; first += pipeline::kBurst) {
      const std::uint32_t n = std::min<std::uint32_t>(pipeline::kBurst, space_.flows - first);
      if (!handshake(first, n)) {
        return tl::unexpected(core::Error{"flows from " + std::to_string(first) +
                                          " were not opened:" + via_.counters()});
      }
    }
    return {};
  }

  /// Frames of one round of both directions, flows in an order without order.
  void fill(FrameRing& ring, std::uint64_t round) const noexcept {
    for (std::size_t i = 0; i < FrameRing::kFrames; ++i) {
      put(ring, i, round * FrameRing::kFrames + i);
    }
  }
  /// The same, of clients alone.
  void fill_requests(FrameRing& ring, std::uint64_t round) const noexcept {
    for (std::size_t i = 0; i < FrameRing::kFrames; ++i) {
      const std::uint64_t k = (round * FrameRing::kFrames + i) % space_.flows;
      ring.put<F>(i, space_.forward(shuffle_.at(static_cast<std::uint32_t>(k))), core::kTcpAck);
    }
  }
  /// Frame k of this order, at place i.
  void put(FrameRing& ring, std::size_t i, std::uint64_t k) const noexcept {
    const std::uint32_t flow = shuffle_.at(static_cast<std::uint32_t>(k % space_.flows));
    const bool reply = ((k / space_.flows + k) & 1) != 0;
    ring.put<F>(i, reply ? reply_of(flow) : space_.forward(flow), core::kTcpAck);
  }

  [[nodiscard]] Key reply_of(std::uint32_t flow) const noexcept {
    const Reply& r = reply_[flow];
    Key key = space_.forward(flow).reversed();
    key.src = numbered<F>(Space::kBackends, r.backend);
    key.sport = core::Be16::from_host(8080);
    if (r.snat != 0) {
      key.dst = numbered<F>(Space::kSnat, r.snat);
      key.dport = r.port;
    }
    return key;
  }

 private:
  using Space = FlowSpace<F>;
  struct Reply {
    std::uint8_t backend = 0;
    std::uint8_t snat = 0;  ///< number of the source address; 0: the client's
    core::Be16 port;
  };

  bool handshake(std::uint32_t first, std::uint32_t n) {
    for (std::uint32_t i = 0; i < n; ++i) {
      ring_.put<F>(i, space_.forward(first + i), core::kTcpSyn);
    }
    if (!pass(n)) {
      return false;
    }
    for (std::uint32_t o = 0; o < n; ++o) {
      const pipeline::Packet& p = via_.out().last(o);
      learn(first + static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(p.handle) - 1),
            p.data);
    }
    for (std::uint32_t i = 0; i < n; ++i) {
      ring_.put<F>(i, reply_of(first + i), core::kTcpSyn | core::kTcpAck);
    }
    if (!pass(n)) {
      return false;
    }
    for (std::uint32_t i = 0; i < n; ++i) {
      ring_.put<F>(i, space_.forward(first + i), core::kTcpAck);
    }
    return pass(n);
  }

  bool pass(std::uint32_t n) {
    via_.poll(&ring_.packet(0), n);
    return via_.out().last_size() == n;
  }

  void learn(std::uint32_t flow, const std::uint8_t* frame) noexcept {
    constexpr bool kV4 = F::kFamily == core::Family::kIpv4;
    const std::uint8_t* src = frame + (kV4 ? 26 : 22);
    const std::uint8_t* dst = src + sizeof(typename F::Address);
    // The last byte of a numbered address is its number (below 256 here), its block is near the
    // front.
    const std::size_t block_at = kV4 ? 0 : 1;
    const std::size_t last = sizeof(typename F::Address) - 1;
    reply_[flow].backend = dst[last];
    if (src[block_at] == Space::kSnat) {
      reply_[flow].snat = src[last];
      reply_[flow].port = core::Be16::load(dst + last + 1);
    }
  }

  Via& via_;
  Space space_;
  Shuffle shuffle_;
  FrameRing ring_;
  std::vector<Reply> reply_;
};

}  // namespace sluice::bench
