// Text forms of addresses, prefixes and MAC addresses.
//
// Reading follows what the Kubernetes API accepts for Services, which is laxer than inet_pton:
// "010.0.0.1" is 10.0.0.1 (decimal, not octal), any number of leading zeros is fine, and an
// IPv4-mapped IPv6 address is the IPv4 address. Writing is always canonical, so text made by us
// can serve as an identity (SL-7).

#include <algorithm>
#include <array>
#include <charconv>

#include "dataplane/core/net/address.h"

namespace sluice::core {

namespace {

/// Takes a decimal number with any count of leading zeros off the front of `text`.
std::optional<unsigned> take_decimal(std::string_view& text, unsigned max) noexcept {
  std::size_t used = 0;
  unsigned value = 0;
  while (used < text.size() && text[used] >= '0' && text[used] <= '9') {
    value = value * 10 + static_cast<unsigned>(text[used] - '0');
    if (value > max) {
      return std::nullopt;
    }
    ++used;
  }
  if (used == 0) {
    return std::nullopt;
  }
  text.remove_prefix(used);
  return value;
}

int hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  if (c >= 'a' && c <= 'f') {
    return c - 'a' + 10;
  }
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/// Takes a 16-bit hexadecimal group off the front of `text`.
std::optional<unsigned> take_group(std::string_view& text) noexcept {
  std::size_t used = 0;
  unsigned value = 0;
  while (used < text.size() && hex_digit(text[used]) >= 0) {
    value = value * 16 + static_cast<unsigned>(hex_digit(text[used]));
    if (value > 0xffff) {
      return std::nullopt;
    }
    ++used;
  }
  if (used == 0) {
    return std::nullopt;
  }
  text.remove_prefix(used);
  return value;
}

bool take(std::string_view& text, std::string_view prefix) noexcept {
  if (!text.starts_with(prefix)) {
    return false;
  }
  text.remove_prefix(prefix.size());
  return true;
}

// A cluster has a hundred thousand of these: one pass, nothing else.
std::optional<Ipv4Address> parse_v4(std::string_view text) noexcept {
  const char* at = text.data();
  const char* const end = at + text.size();
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) {
    if (i != 0 && (at == end || *at++ != '.')) {
      return std::nullopt;
    }
    std::uint32_t octet = 0;
    const char* const first = at;
    for (; at != end; ++at) {
      const auto digit = static_cast<std::uint32_t>(static_cast<unsigned char>(*at)) - '0';
      if (digit > 9) {
        break;
      }
      octet = octet * 10 + digit;
      if (octet > 255) {
        return std::nullopt;
      }
    }
    if (at == first) {
      return std::nullopt;
    }
    value = value << 8 | octet;
  }
  return at == end ? std::optional(Be32::from_host(value)) : std::nullopt;
}

/// The groups of an IPv6 address read so far, before the gap of "::" is spread.
struct Groups {
  std::array<std::uint8_t, 16> bytes{};
  std::size_t size = 0;  ///< bytes filled
  std::optional<std::size_t> gap;
};

/// Reads one group, or the dotted quad that ends the text.
bool take_group_or_quad(std::string_view& text, Groups& groups) noexcept {
  const std::string_view rest = text;
  const auto group = take_group(text);
  if (text.starts_with('.') || !group) {
    const auto quad = parse_v4(rest);
    if (!quad || groups.size > 12) {
      return false;
    }
    quad->store(groups.bytes.data() + groups.size);
    groups.size += 4;
    text = {};
    return true;
  }
  Be16::from_host(static_cast<std::uint16_t>(*group)).store(groups.bytes.data() + groups.size);
  groups.size += 2;
  return true;
}

std::optional<Groups> read_groups(std::string_view text) noexcept {
  Groups groups;
  if (take(text, "::")) {
    groups.gap = 0;
  }
  while (!text.empty()) {
    if (groups.size >= 16 || !take_group_or_quad(text, groups)) {
      return std::nullopt;
    }
    if (text.empty()) {
      break;
    }
    if (take(text, "::")) {
      if (groups.gap) {
        return std::nullopt;
      }
      groups.gap = groups.size;
    } else if (!take(text, ":") || text.empty()) {
      return std::nullopt;
    }
  }
  return groups;
}

std::optional<Ipv6Address> parse_v6(std::string_view text) noexcept {
  const auto groups = read_groups(text);
  if (!groups || (groups->size == 16) == groups->gap.has_value()) {
    return std::nullopt;  // too short without "::", or a "::" that stands for nothing
  }
  Ipv6Address address;
  const std::size_t head = groups->gap.value_or(16);
  const std::size_t tail = groups->size - std::min(head, groups->size);
  std::memcpy(address.bytes.data(), groups->bytes.data(), std::min(head, groups->size));
  std::memcpy(address.bytes.data() + 16 - tail, groups->bytes.data() + groups->size - tail, tail);
  return address;
}

constexpr std::array<std::uint8_t, 12> kMappedPrefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

bool is_mapped(const Ipv6Address& address) noexcept {
  return std::memcmp(address.bytes.data(), kMappedPrefix.data(), kMappedPrefix.size()) == 0;
}

constexpr std::size_t kLongestQuad = 15;
constexpr std::size_t kLongestPort = 6;  // with the colon

/// @param to  has room for kLongestQuad. @return behind it.
char* put_quad(char* to, const std::uint8_t* bytes) noexcept {
  for (std::size_t i = 0; i < 4; ++i) {
    const unsigned byte = bytes[i];
    if (i != 0) {
      *to++ = '.';
    }
    if (byte >= 100) {
      *to++ = static_cast<char>('0' + byte / 100);
    }
    if (byte >= 10) {
      *to++ = static_cast<char>('0' + byte / 10 % 10);
    }
    *to++ = static_cast<char>('0' + byte % 10);
  }
  return to;
}

void append_quad(std::string& out, const std::uint8_t* bytes) {
  std::array<char, kLongestQuad> text;
  out.append(text.data(), put_quad(text.data(), bytes));
}

/// First and one-past-last group of the longest run of at least two zero groups (RFC 5952, 4.2).
std::pair<std::size_t, std::size_t> longest_zero_run(const Ipv6Address& address) noexcept {
  std::pair<std::size_t, std::size_t> best{8, 8};
  std::size_t start = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    if (address.bytes[2 * i] != 0 || address.bytes[2 * i + 1] != 0) {
      start = i + 1;
    } else if (i + 1 - start >= 2 && i + 1 - start > best.second - best.first) {
      best = {start, i + 1};
    }
  }
  return best;
}

void append_v6(std::string& out, const Ipv6Address& address) {
  if (is_mapped(address)) {
    out += "::ffff:";
    append_quad(out, address.bytes.data() + 12);
    return;
  }
  const auto [zero_begin, zero_end] = longest_zero_run(address);
  for (std::size_t i = 0; i < 8; ++i) {
    if (i == zero_begin) {
      out += "::";
      i = zero_end - 1;
      continue;
    }
    if (i != 0 && i != zero_end) {
      out += ':';
    }
    std::array<char, 4> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(),
                                   Be16::load(address.bytes.data() + 2 * i).host(), 16);
    out.append(digits.data(), end.ptr);
  }
}

}  // namespace

std::optional<IpAddress> parse_address(std::string_view text) noexcept {
  if (const auto v4 = parse_v4(text)) {
    return IpAddress(*v4);
  }
  const auto v6 = parse_v6(text);
  if (!v6) {
    return std::nullopt;
  }
  return is_mapped(*v6) ? IpAddress(Be32::load(v6->bytes.data() + 12)) : IpAddress(*v6);
}

std::string to_string(const IpAddress& address) {
  std::string out;
  if (address.is_v4()) {
    append_quad(out, address.data());
  } else {
    append_v6(out, address.v6());
  }
  return out;
}

EndpointText text_of(const IpAddress& address, std::uint16_t port) {
  static_assert(std::tuple_size_v<EndpointText> >= kLongestQuad + kLongestPort);
  EndpointText text{};
  char* at = text.data();
  if (address.is_v4()) {
    at = put_quad(at, address.data());
  } else {
    std::string inner;
    append_v6(inner, address.v6());
    *at++ = '[';
    at = std::copy(inner.begin(), inner.end(), at);
    *at++ = ']';
  }
  *at++ = ':';
  std::to_chars(at, text.data() + text.size(), port);
  return text;
}

std::string to_string(const IpAddress& address, std::uint16_t port) {
  return text_of(address, port).data();  // there is a zero behind the longest, of 47 characters
}

std::optional<Cidr> parse_cidr(std::string_view text) noexcept {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view address_text = text.substr(0, slash);
  std::string_view length_text = text.substr(slash + 1);
  const auto address = parse_address(address_text);
  const auto length = take_decimal(length_text, 128);
  if (!address || !length || !length_text.empty()) {
    return std::nullopt;
  }
  // A mapped prefix counts its bits from the IPv6 start; below /96 it is not an IPv4 prefix.
  const bool mapped = address->is_v4() && address_text.find(':') != std::string_view::npos;
  if (mapped && *length < 96) {
    return std::nullopt;
  }
  const unsigned bits = mapped ? *length - 96 : *length;
  return bits <= address->size() * 8 ? std::optional(Cidr(*address, bits)) : std::nullopt;
}

std::string to_string(const Cidr& cidr) {
  return to_string(cidr.address()) + '/' + std::to_string(cidr.length());
}

std::string to_string(const MacAddress& mac) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (std::size_t i = 0; i < mac.bytes.size(); ++i) {
    out += i == 0 ? "" : ":";
    out += kDigits[mac.bytes[i] >> 4];
    out += kDigits[mac.bytes[i] & 15];
  }
  return out;
}

std::optional<MacAddress> parse_mac(std::string_view text) noexcept {
  constexpr std::size_t kLength = 17;  // six pairs, five separators
  if (text.size() != kLength || (text[2] != ':' && text[2] != '-')) {
    return std::nullopt;
  }
  MacAddress mac;
  for (std::size_t i = 0; i < mac.bytes.size(); ++i) {
    const int high = hex_digit(text[3 * i]);
    const int low = hex_digit(text[3 * i + 1]);
    if (high < 0 || low < 0 || (i > 0 && text[3 * i - 1] != text[2])) {
      return std::nullopt;
    }
    mac.bytes[i] = static_cast<std::uint8_t>(high << 4 | low);
  }
  return mac;
}

}  // namespace sluice::core
