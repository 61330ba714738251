#pragma once

// Big-endian numbers in frames that tests build.

#include "test/support/packet_builder.h"

namespace sluice::test {

inline void put16(Bytes& to, std::size_t at, std::uint32_t value) {
  to[at] = static_cast<std::uint8_t>(value >> 8);
  to[at + 1] = static_cast<std::uint8_t>(value);
}

inline void put32(Bytes& to, std::size_t at, std::uint32_t value) {
  put16(to, at, value >> 16);
  put16(to, at + 2, value & 0xffff);
}

[[nodiscard]] inline std::uint16_t get16(const Bytes& from, std::size_t at) {
  return static_cast<std::uint16_t>(from[at] << 8 | from[at + 1]);
}

inline void append(Bytes& to, const Bytes& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace sluice::test
