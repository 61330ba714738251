#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "dataplane/core/net/address.h"

namespace sluice::core {

/// The hash NICs use for RSS, in software: which worker owns a flow (design section 5).
///
/// The hash is linear, so the contribution of each input byte at each position is a table entry and
/// the hash is the XOR of one entry per byte: 6 loads for (IPv4, port) instead of 48 steps over the
/// bits. Tables take 36 KiB, of which (address, port) touches 6 or 18.
/// Thread: any after construction. Source: Microsoft, "RSS hashing functions".
class Toeplitz {
 public:
  static constexpr std::size_t kMaxInput = 36;  ///< two IPv6 addresses and two ports
  static constexpr std::size_t kMinKey = kMaxInput + 4;

  /// @param key  the port's RSS key, at least kMinKey bytes (40 or 52 in NICs). A shorter one is
  ///             continued with zeros.
  explicit Toeplitz(std::span<const std::uint8_t> key);

  /// Over the 6 bytes address and port. About 10 cycles.
  [[nodiscard]] std::uint32_t operator()(Ipv4Address address, Be16 port) const noexcept {
    std::uint8_t input[6];
    address.store(input);
    port.store(input + 4);
    return hash(std::span<const std::uint8_t, 6>(input));
  }
  /// Over the 18 bytes address and port. About 20 cycles.
  [[nodiscard]] std::uint32_t operator()(const Ipv6Address& address, Be16 port) const noexcept {
    std::uint8_t input[18];
    address.store(input);
    port.store(input + 16);
    return hash(std::span<const std::uint8_t, 18>(input));
  }
  /// Over any input in packet order. Precondition: N <= kMaxInput, or input.size() is.
  template <std::size_t N>
  [[nodiscard]] std::uint32_t hash(std::span<const std::uint8_t, N> input) const noexcept {
    std::uint32_t result = 0;
    for (std::size_t i = 0; i < input.size(); ++i) {
      result ^= (*tables_)[i][input[i]];
    }
    return result;
  }

 private:
  using Tables = std::array<std::array<std::uint32_t, 256>, kMaxInput>;
  std::unique_ptr<const Tables> tables_;
};

}  // namespace sluice::core
