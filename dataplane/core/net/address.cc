#include "dataplane/core/net/address.h"

#include <algorithm>

namespace sluice::core {

std::string_view protocol_name(Protocol protocol) noexcept {
  switch (protocol) {
    case Protocol::kTcp:
      return "tcp";
    case Protocol::kUdp:
      return "udp";
    case Protocol::kSctp:
      return "sctp";
  }
  return "unknown";
}

bool IpAddress::is_loopback() const noexcept {
  if (is_v4()) {
    return bytes_[0] == 127;
  }
  return bytes_[15] == 1 &&
         std::all_of(bytes_.begin(), bytes_.end() - 1, [](std::uint8_t b) { return b == 0; });
}

bool IpAddress::is_multicast() const noexcept {
  return is_v4() ? (bytes_[0] & 0xf0) == 0xe0 : bytes_[0] == 0xff;
}

bool IpAddress::is_unspecified() const noexcept {
  return std::all_of(bytes_.begin(), bytes_.end(), [](std::uint8_t b) { return b == 0; });
}

namespace {

/// Clears the bits after `length` in the `size` significant bytes.
void clear_host_bits(std::uint8_t* bytes, std::size_t size, unsigned length) noexcept {
  for (std::size_t i = 0; i < size; ++i) {
    const unsigned first_bit = static_cast<unsigned>(i) * 8;
    if (first_bit >= length) {
      bytes[i] = 0;
    } else if (length - first_bit < 8) {
      bytes[i] = static_cast<std::uint8_t>(bytes[i] & (0xff00u >> (length - first_bit)));
    }
  }
}

}  // namespace

Cidr::Cidr(const IpAddress& address, unsigned length) noexcept
    : length_(static_cast<std::uint8_t>(
          std::min<unsigned>(length, static_cast<unsigned>(address.size()) * 8))) {
  std::array<std::uint8_t, 16> bytes{};
  std::memcpy(bytes.data(), address.data(), bytes.size());
  clear_host_bits(bytes.data(), address.size(), length_);
  address_ = address.is_v4() ? IpAddress(Be32::load(bytes.data())) : IpAddress(Ipv6Address{bytes});
}

bool Cidr::contains(const IpAddress& address) const noexcept {
  if (address.family() != family()) {
    return false;
  }
  const std::size_t whole = length_ / 8;
  if (std::memcmp(address.data(), address_.data(), whole) != 0) {
    return false;
  }
  const unsigned rest = length_ % 8;
  const unsigned mask = (0xff00u >> rest) & 0xff;
  return rest == 0 || (address.data()[whole] & mask) == address_.data()[whole];
}

}  // namespace sluice::core
