#include "dataplane/core/net/crc32c.h"

namespace sluice::core {

namespace {

/// Product of two polynomials modulo the CRC's, both reflected (bit 31 is x^0).
constexpr std::uint32_t multiply(std::uint32_t a, std::uint32_t b) noexcept {
  std::uint32_t product = 0;
  for (int bit = 0; bit < 32; ++bit) {
    product ^= (a & 0x80000000) != 0 ? b : 0;
    a <<= 1;
    b = (b >> 1) ^ ((b & 1) != 0 ? kCrc32cPolynomial : 0);
  }
  return product;
}

/// x^(8 * 2^i): what a register is multiplied by when 2^i zero bytes pass through it.
constexpr std::array<std::uint32_t, 17> kZeroBytes = [] {
  std::array<std::uint32_t, 17> powers{};  // 2^17 bytes are more than any IP packet
  powers[0] = 0x00800000;                  // x^8
  for (std::size_t i = 1; i < powers.size(); ++i) {
    powers[i] = multiply(powers[i - 1], powers[i - 1]);
  }
  return powers;
}();

}  // namespace

std::uint32_t crc32c_change(std::uint32_t changed_bits, std::size_t bytes_after) noexcept {
  std::array<std::uint8_t, 4> bytes;
  std::memcpy(bytes.data(), &changed_bits, bytes.size());
  std::uint32_t state = crc32c_update(0, bytes.data(), bytes.size());
  for (std::size_t i = 0; i < kZeroBytes.size() && (bytes_after >> i) != 0; ++i) {
    if (((bytes_after >> i) & 1) != 0) {
      state = multiply(state, kZeroBytes[i]);
    }
  }
  return state;
}

}  // namespace sluice::core
