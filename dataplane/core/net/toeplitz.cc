#include "dataplane/core/net/toeplitz.h"

#include <algorithm>

namespace sluice::core {

namespace {

/// The 32 key bits from bit `at` on.
std::uint32_t key_window(std::span<const std::uint8_t> key, std::size_t at) noexcept {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < 5; ++i) {
    const std::size_t byte = at / 8 + i;
    bits = bits << 8 | (byte < key.size() ? key[byte] : 0u);
  }
  return static_cast<std::uint32_t>(bits >> (8 - at % 8));
}

}  // namespace

Toeplitz::Toeplitz(std::span<const std::uint8_t> key) {
  auto tables = std::make_unique<Tables>();
  for (std::size_t position = 0; position < kMaxInput; ++position) {
    auto& table = (*tables)[position];
    table[0] = 0;
    for (unsigned value = 1; value < 256; ++value) {
      // The lowest set bit's share, on top of the value without it.
      const unsigned without = value & (value - 1);
      const auto bit = static_cast<unsigned>(__builtin_ctz(value));
      table[value] = table[without] ^ key_window(key, position * 8 + (7 - bit));
    }
  }
  tables_ = std::move(tables);
}

}  // namespace sluice::core
