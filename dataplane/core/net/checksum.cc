#include "dataplane/core/net/checksum.h"

namespace sluice::core {

namespace {

std::uint16_t load16(const std::uint8_t* at) noexcept {
  std::uint16_t word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

}  // namespace

std::uint64_t sum_bytes(const void* data, std::size_t length) noexcept {
  const auto* at = static_cast<const std::uint8_t*>(data);
  std::uint64_t sum = 0;
  const std::size_t words = length / 4;
  // 32-bit loads into a 64-bit sum need no carry handling, so the compiler can vectorise this.
  for (std::size_t i = 0; i < words; ++i) {
    std::uint32_t word;
    std::memcpy(&word, at + 4 * i, sizeof word);
    sum += word;
  }
  at += 4 * words;
  if ((length & 2) != 0) {
    sum += load16(at);
    at += 2;
  }
  if ((length & 1) != 0) {
    std::uint16_t last = 0;
    std::memcpy(&last, at, 1);
    sum += last;
  }
  return sum;
}

void ChecksumDelta::replace(const Ipv6Address& before, const Ipv6Address& after) noexcept {
  if (before == after) {
    return;
  }
  for (std::size_t i = 0; i < 16; i += 4) {
    replace(Be32::load(before.bytes.data() + i), Be32::load(after.bytes.data() + i));
  }
}

std::uint16_t ipv4_header_checksum(const std::uint8_t* header, std::size_t header_length) noexcept {
  constexpr std::size_t kField = 10;
  const std::uint64_t sum = sum_bytes(header, header_length);
  const std::uint16_t field = load16(header + kField);
  return static_cast<std::uint16_t>(~fold(sum - field));
}

std::uint16_t pseudo_header_sum(const IpAddress& src, const IpAddress& dst, std::uint8_t protocol,
                                std::size_t l4_length) noexcept {
  // Both families sum the same words: addresses, length, protocol (RFC 793, RFC 8200 8.1).
  std::uint64_t sum = sum_bytes(src.data(), src.size()) + sum_bytes(dst.data(), dst.size());
  sum += Be32::from_host(static_cast<std::uint32_t>(l4_length)).raw();
  sum += Be32::from_host(protocol).raw();
  return fold(sum);
}

std::uint16_t l4_checksum(const IpAddress& src, const IpAddress& dst, std::uint8_t protocol,
                          const std::uint8_t* l4, std::size_t length) noexcept {
  std::uint64_t sum = pseudo_header_sum(src, dst, protocol, length) + sum_bytes(l4, length);
  std::size_t field = 0;
  if (l4_checksum_offset(protocol, field) && field + 2 <= length) {
    sum -= load16(l4 + field);
  }
  const auto checksum = static_cast<std::uint16_t>(~fold(sum));
  return checksum == 0 && protocol == 17 ? std::uint16_t{0xffff} : checksum;
}

}  // namespace sluice::core
