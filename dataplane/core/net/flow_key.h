#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "dataplane/core/net/address.h"

namespace sluice::core {

/// The five-tuple as it stands in a packet of that direction. Layout is the rte_hash key: every
/// byte is defined (padding is zero), compare and hash are by bytes.
/// Source: design section 5; 16 bytes is one SSE compare in rte_hash, IPv6 is padded from 37 to 48
/// because a 40-byte key costs 1.4-1.8 times as much there (measured).
struct alignas(16) FlowKey4 {
  Ipv4Address src;
  Ipv4Address dst;
  Be16 sport;
  Be16 dport;
  std::uint8_t proto = 0;
  std::uint8_t zero[3] = {};

  [[nodiscard]] FlowKey4 reversed() const noexcept { return {dst, src, dport, sport, proto, {}}; }
  bool operator==(const FlowKey4& o) const noexcept { return std::memcmp(this, &o, 16) == 0; }
};
static_assert(sizeof(FlowKey4) == 16 && std::is_trivially_copyable_v<FlowKey4>);

struct alignas(16) FlowKey6 {
  Ipv6Address src;
  Ipv6Address dst;
  Be16 sport;
  Be16 dport;
  std::uint8_t proto = 0;
  std::uint8_t zero[11] = {};

  [[nodiscard]] FlowKey6 reversed() const noexcept { return {dst, src, dport, sport, proto, {}}; }
  bool operator==(const FlowKey6& o) const noexcept { return std::memcmp(this, &o, 48) == 0; }
};
static_assert(sizeof(FlowKey6) == 48 && std::is_trivially_copyable_v<FlowKey6>);

/// Compile-time family: what the per-family code is instantiated with.
struct Ipv4 {
  static constexpr Family kFamily = Family::kIpv4;
  using Address = Ipv4Address;
  using Key = FlowKey4;
};
struct Ipv6 {
  static constexpr Family kFamily = Family::kIpv6;
  using Address = Ipv6Address;
  using Key = FlowKey6;
};

/// A five-tuple of either family, for the control side and for decide().
struct FlowTuple {
  IpAddress src;
  IpAddress dst;
  std::uint16_t sport = 0;  ///< host order
  std::uint16_t dport = 0;  ///< host order
  Protocol protocol = Protocol::kTcp;
  bool operator==(const FlowTuple&) const = default;
};

}  // namespace sluice::core
