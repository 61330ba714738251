#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "dataplane/core/conn/entry.h"
#include "dataplane/core/net/address.h"
#include "dataplane/pipeline/packet.h"

namespace sluice::pipeline {

using core::NextHopIndex;

enum class NeighbourState : std::uint8_t {
  kUnused = 0,
  kUnresolved = 1,  ///< asked, no answer yet: packets wait (at most 8 a worker)
  kReachable = 2,
  kFailed = 3,  ///< kernel gave up: packets are dropped, counted
  kHost = 4,    ///< the address is the host's own: to the kernel
};

/// A next hop as one 64-bit word, so that a worker reads MAC, port and state in one load.
/// bits 0-47 MAC (byte 0 lowest), 48-55 PortIndex, 56-63 NeighbourState.
struct NextHopWord {
  std::uint64_t raw = 0;
  static NextHopWord make(const core::MacAddress& mac, PortIndex port, NeighbourState s) noexcept {
    std::uint64_t v = 0;
    for (int i = 5; i >= 0; --i) {
      v = (v << 8) | mac.bytes[static_cast<std::size_t>(i)];
    }
    return {v | (std::uint64_t{static_cast<std::uint8_t>(port)} << 48) |
            (std::uint64_t{static_cast<std::uint8_t>(s)} << 56)};
  }
  [[nodiscard]] PortIndex port() const noexcept {
    return static_cast<PortIndex>((raw >> 48) & 0xff);
  }
  [[nodiscard]] NeighbourState state() const noexcept {
    return static_cast<NeighbourState>(raw >> 56);
  }
};

/// Next-hop words, one per (port, gateway or on-link address). Fixed size from the configuration.
/// Thread: words are written by the rtnetlink thread only (release), read by workers (relaxed is
/// enough: one word is the whole message).
class NextHopTable {
 public:
  explicit NextHopTable(std::size_t size) : words_(size) {}
  [[nodiscard]] std::size_t size() const noexcept { return words_.size(); }
  [[nodiscard]] NextHopWord read(NextHopIndex i) const noexcept {
    return {words_[static_cast<std::uint16_t>(i)].load(std::memory_order_relaxed)};
  }
  void write(NextHopIndex i, NextHopWord word) noexcept {
    words_[static_cast<std::uint16_t>(i)].store(word.raw, std::memory_order_release);
  }

 private:
  std::vector<std::atomic<std::uint64_t>> words_;
};

/// Routes of the ports, mirrored from the host, as workers use them: longest prefix first.
/// Immutable; a change makes a new one. Looked up once per new flow and when the epoch moved.
struct Route {
  core::Cidr prefix;
  PortIndex port = PortIndex::kNone;       ///< kNone: by no port of ours, the host knows the way
  std::optional<core::IpAddress> gateway;  ///< absent: on link
};
class RouteTable {
 public:
  /// Sorts; of equal prefixes the first given wins (the caller gives them by metric).
  explicit RouteTable(std::vector<Route> routes);
  RouteTable() = default;
  /// @return nullptr: no route (the packet goes to the host). Cost: one binary search for each
  /// prefix length in use.
  [[nodiscard]] const Route* find(const core::IpAddress& to) const noexcept;
  [[nodiscard]] const std::vector<Route>& routes() const noexcept { return routes_; }

 private:
  /// Routes of one family and prefix length: routes_[begin, end), sorted by address.
  struct Group {
    core::Family family;
    unsigned length;
    std::size_t begin;
    std::size_t end;
  };
  std::vector<Route> routes_;
  std::vector<Group> groups_;  ///< longest first within a family
};

}  // namespace sluice::pipeline
