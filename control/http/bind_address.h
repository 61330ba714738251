#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/core/net/address.h"
#include "dataplane/core/sink.h"

namespace sluice::http {

/// Where a server listens: one socket per address. No addresses: it is off.
struct BindAddress {
  std::vector<core::IpAddress> addresses;
  std::uint16_t port = 0;
  bool operator==(const BindAddress&) const = default;
};

/// Reads a configured address (F97).
///
///   ""               off
///   "192.0.2.1:p"    that address; "[fd00::1]:p" likewise
///   "0.0.0.0:p"      all IPv4 addresses
///   "[::]:p", ":p"   all addresses of both families
///   "192.0.2.1", "fd00::1", "[fd00::1]"   with `default_port`
///   "p"              as ":p"
///
/// Errors: anything else, a host name too; the message names the text.
[[nodiscard]] core::Result<BindAddress> parse_bind_address(std::string_view text,
                                                           std::uint16_t default_port);

}  // namespace sluice::http
