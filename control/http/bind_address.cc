#include "control/http/bind_address.h"

#include <charconv>
#include <optional>

namespace sluice::http {
namespace {

const core::IpAddress kAnyIpv4{};
const core::IpAddress kAnyIpv6{core::Ipv6Address{}};

std::optional<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, port);
  return read.ec == std::errc{} && read.ptr == end ? std::optional(port) : std::nullopt;
}

/// Takes "host", "[host]" or "" off the front and leaves ":port" or "".
std::string_view take_host(std::string_view& text) {
  std::size_t length = 0;
  if (text.starts_with('[')) {
    length = text.find(']');
    length = length == std::string_view::npos ? 0 : length + 1;
  } else if (text.find(':') == text.rfind(':')) {
    length = std::min(text.find(':'), text.size());
  } else {
    length = text.size();  // a bare IPv6 address
  }
  std::string_view host = text.substr(0, length);
  text.remove_prefix(length);
  if (host.size() >= 2 && host.starts_with('[')) {
    host = host.substr(1, host.size() - 2);
    return host.find(':') == std::string_view::npos ? std::string_view("?") : host;
  }
  return host;
}

}  // namespace

core::Result<BindAddress> parse_bind_address(std::string_view text, std::uint16_t default_port) {
  if (text.empty()) {
    return BindAddress{};
  }
  if (const auto port = parse_port(text)) {
    return BindAddress{{kAnyIpv4, kAnyIpv6}, *port};
  }
  std::string_view rest = text;
  const std::string_view host = take_host(rest);
  const auto port = rest.empty()
                        ? std::optional(default_port)
                        : (rest.starts_with(':') ? parse_port(rest.substr(1)) : std::nullopt);
  const auto address = host.empty() ? std::optional(kAnyIpv6) : core::parse_address(host);
  if (!port || !address) {
    return tl::unexpected(core::Error{"'" + std::string(text) +
                                      "' is not an address to listen on: use host:port, host, "
                                      ":port, or nothing to turn it off"});
  }
  if (*address == kAnyIpv6) {
    return BindAddress{{kAnyIpv4, kAnyIpv6}, *port};
  }
  return BindAddress{{*address}, *port};
}

}  // namespace sluice::http
