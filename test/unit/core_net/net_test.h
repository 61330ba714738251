#pragma once

// What the tests of core/net share.

#include <algorithm>
#include <memory>
#include <ostream>

#include <gtest/gtest.h>

#include "dataplane/core/net/parse.h"
#include "test/support/packet_builder.h"
#include "test/support/packet_view.h"

namespace sluice::core {

inline std::uint32_t size_of(const test::Bytes& frame) {
  return static_cast<std::uint32_t>(frame.size());
}

/// Parses a heap copy of the exact size: the address sanitizer sees every byte read too many.
inline ParsedFrame parse(const test::Bytes& frame) {
  const std::unique_ptr<std::uint8_t[]> copy(new std::uint8_t[frame.size()]);
  std::copy(frame.begin(), frame.end(), copy.get());
  ParsedFrame out;
  parse_frame(copy.get(), size_of(frame), size_of(frame), out);
  return out;
}

inline test::PacketBuilder v4(const char* src = "10.0.0.1", const char* dst = "10.0.0.2") {
  return test::PacketBuilder().eth().ipv4(src, dst, 33);
}
inline test::PacketBuilder v6(const char* src = "fd00::1", const char* dst = "fd00::2") {
  return test::PacketBuilder().eth().ipv6(src, dst, 33);
}

inline Ipv4Address ip4(std::string_view text) {
  return parse_address(text)->v4();
}
inline Ipv6Address ip6(std::string_view text) {
  return parse_address(text)->v6();
}

inline FlowKey4 key4(std::string_view src, std::uint16_t sport, std::string_view dst,
                     std::uint16_t dport, std::uint8_t proto) {
  return {ip4(src), ip4(dst), Be16::from_host(sport), Be16::from_host(dport), proto, {}};
}
inline FlowKey6 key6(std::string_view src, std::uint16_t sport, std::string_view dst,
                     std::uint16_t dport, std::uint8_t proto) {
  return {ip6(src), ip6(dst), Be16::from_host(sport), Be16::from_host(dport), proto, {}};
}

}  // namespace sluice::core
