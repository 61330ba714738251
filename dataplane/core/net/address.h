#pragma once

#include <array>
#include <bit>
#include <compare>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "dataplane/core/net/byte_order.h"

namespace sluice::core {

enum class Family : std::uint8_t { kIpv4 = 4, kIpv6 = 6 };

/// IP protocol numbers that a Service can have.
enum class Protocol : std::uint8_t { kTcp = 6, kUdp = 17, kSctp = 132 };

/// "tcp", "udp", "sctp" (S-12: lower case in everything we print).
[[nodiscard]] std::string_view protocol_name(Protocol protocol) noexcept;

using Ipv4Address = Be32;

struct Ipv6Address {
  std::array<std::uint8_t, 16> bytes{};
  static Ipv6Address load(const void* at) noexcept {
    Ipv6Address a;
    std::memcpy(a.bytes.data(), at, 16);
    return a;
  }
  void store(void* at) const noexcept { std::memcpy(at, bytes.data(), 16); }
  constexpr bool operator==(const Ipv6Address&) const = default;
  constexpr auto operator<=>(const Ipv6Address&) const = default;
};

/// An address of either family. IPv4 lies in the first four bytes, the rest is zero, so that
/// equality and hashing by bytes are right.
class IpAddress {
 public:
  constexpr IpAddress() = default;  // 0.0.0.0
  // NOLINTNEXTLINE(google-explicit-constructor): widening is lossless
  IpAddress(Ipv4Address v4) noexcept : family_(Family::kIpv4) { v4.store(bytes_.data()); }
  // NOLINTNEXTLINE(google-explicit-constructor)
  IpAddress(Ipv6Address v6) noexcept : family_(Family::kIpv6), bytes_(v6.bytes) {}

  [[nodiscard]] constexpr Family family() const noexcept { return family_; }
  [[nodiscard]] constexpr bool is_v4() const noexcept { return family_ == Family::kIpv4; }
  /// Precondition: is_v4().
  [[nodiscard]] Ipv4Address v4() const noexcept { return Be32::load(bytes_.data()); }
  /// Precondition: !is_v4().
  [[nodiscard]] Ipv6Address v6() const noexcept { return Ipv6Address{bytes_}; }
  /// 4 or 16 significant bytes.
  [[nodiscard]] constexpr std::size_t size() const noexcept { return is_v4() ? 4 : 16; }
  [[nodiscard]] const std::uint8_t* data() const noexcept { return bytes_.data(); }

  [[nodiscard]] bool is_loopback() const noexcept;     ///< 127.0.0.0/8, ::1
  [[nodiscard]] bool is_multicast() const noexcept;    ///< 224.0.0.0/4, ff00::/8
  [[nodiscard]] bool is_unspecified() const noexcept;  ///< 0.0.0.0, ::

  constexpr bool operator==(const IpAddress& other) const noexcept {
    if (std::is_constant_evaluated()) {
      return family_ == other.family_ && bytes_ == other.bytes_;
    }
    return ((half(0) ^ other.half(0)) | (half(8) ^ other.half(8))) == 0 &&
           family_ == other.family_;
  }
  constexpr std::strong_ordering operator<=>(const IpAddress& other) const noexcept {
    if (std::is_constant_evaluated()) {
      const auto order = family_ <=> other.family_;
      return order != 0 ? order : bytes_ <=> other.bytes_;
    }
    if (family_ != other.family_) {
      return family_ <=> other.family_;
    }
    const std::size_t at = half(0) != other.half(0) ? 0 : 8;
    return in_order(half(at)) <=> in_order(other.half(at));
  }

 private:
  /// The first byte is the highest.
  [[nodiscard]] static std::uint64_t in_order(std::uint64_t raw) noexcept {
    return std::endian::native == std::endian::little ? __builtin_bswap64(raw) : raw;
  }
  [[nodiscard]] std::uint64_t half(std::size_t at) const noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes_.data() + at, sizeof word);
    return word;
  }
  Family family_ = Family::kIpv4;
  std::array<std::uint8_t, 16> bytes_{};
};

/// Parses an address as the Kubernetes API does for Services: leading zeros of IPv4 octets are
/// tolerated and decimal (S-2, SL-6), IPv4-mapped IPv6 becomes IPv4, no zone, no surrounding space.
/// @return nullopt for anything else.
[[nodiscard]] std::optional<IpAddress> parse_address(std::string_view text) noexcept;

/// Canonical text: dotted quad, or RFC 5952 for IPv6.
[[nodiscard]] std::string to_string(const IpAddress& address);
/// "10.0.0.1:80", "[fd00::1]:80" (SL-7: the endpoint identity).
[[nodiscard]] std::string to_string(const IpAddress& address, std::uint16_t port);
/// That text with zeros behind it, so that they sort as the texts do.
using EndpointText = std::array<char, 48>;
[[nodiscard]] EndpointText text_of(const IpAddress& address, std::uint16_t port);

/// A prefix. Host bits are cleared at construction, so equal prefixes compare equal.
class Cidr {
 public:
  constexpr Cidr() = default;  // 0.0.0.0/0
  /// @param length 0..32 or 0..128; larger values are clamped.
  Cidr(const IpAddress& address, unsigned length) noexcept;
  [[nodiscard]] const IpAddress& address() const noexcept { return address_; }
  [[nodiscard]] unsigned length() const noexcept { return length_; }
  [[nodiscard]] Family family() const noexcept { return address_.family(); }
  /// False for an address of the other family.
  [[nodiscard]] bool contains(const IpAddress& address) const noexcept;
  bool operator==(const Cidr&) const = default;
  auto operator<=>(const Cidr&) const = default;

 private:
  IpAddress address_;
  std::uint8_t length_ = 0;
};

/// "10.0.0.0/8"; leading zeros as parse_address. A missing or bad length is nullopt.
[[nodiscard]] std::optional<Cidr> parse_cidr(std::string_view text) noexcept;
[[nodiscard]] std::string to_string(const Cidr& cidr);

struct MacAddress {
  std::array<std::uint8_t, 6> bytes{};
  static MacAddress load(const void* at) noexcept {
    MacAddress m;
    std::memcpy(m.bytes.data(), at, 6);
    return m;
  }
  void store(void* at) const noexcept { std::memcpy(at, bytes.data(), 6); }
  [[nodiscard]] constexpr bool is_multicast() const noexcept { return (bytes[0] & 1) != 0; }
  constexpr bool operator==(const MacAddress&) const = default;
};
[[nodiscard]] std::string to_string(const MacAddress& mac);
[[nodiscard]] std::optional<MacAddress> parse_mac(std::string_view text) noexcept;

}  // namespace sluice::core
