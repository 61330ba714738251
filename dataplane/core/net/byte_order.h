#pragma once

#include <bit>
#include <compare>
#include <cstdint>
#include <cstring>

namespace sluice::core {

/// An integer in network byte order. There is no implicit conversion in either direction: the
/// compiler finds every place that forgets one. Trivially copyable, so it may be overlaid on a
/// packet through load()/store().
template <class T>
class BigEndian {
 public:
  constexpr BigEndian() = default;
  /// @param value in host order.
  static constexpr BigEndian from_host(T value) noexcept { return BigEndian(swap(value)); }
  /// @param raw the bytes as they lie in the packet, read as an integer.
  static constexpr BigEndian from_raw(T raw) noexcept { return BigEndian(raw); }
  /// Reads an unaligned value from a packet.
  static BigEndian load(const void* at) noexcept {
    T raw;
    std::memcpy(&raw, at, sizeof raw);
    return BigEndian(raw);
  }
  void store(void* at) const noexcept { std::memcpy(at, &raw_, sizeof raw_); }

  [[nodiscard]] constexpr T host() const noexcept { return swap(raw_); }
  [[nodiscard]] constexpr T raw() const noexcept { return raw_; }

  constexpr bool operator==(const BigEndian&) const = default;
  constexpr auto operator<=>(const BigEndian& other) const noexcept {
    return host() <=> other.host();
  }

 private:
  explicit constexpr BigEndian(T raw) : raw_(raw) {}
  static constexpr T swap(T value) noexcept {
    if constexpr (std::endian::native == std::endian::big || sizeof(T) == 1) {
      return value;
    } else if constexpr (sizeof(T) == 2) {
      return __builtin_bswap16(value);
    } else if constexpr (sizeof(T) == 4) {
      return __builtin_bswap32(value);
    } else {
      return __builtin_bswap64(value);
    }
  }
  T raw_ = 0;
};

using Be16 = BigEndian<std::uint16_t>;
using Be32 = BigEndian<std::uint32_t>;

}  // namespace sluice::core
