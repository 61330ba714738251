#pragma once

#include <cstdint>

#include "dataplane/core/net/address.h"
#include "dataplane/core/sink.h"

namespace sluice::http {

/// A listening TCP socket, not blocking. The caller closes it.
/// Errors: with the address and the reason.
[[nodiscard]] core::Result<int> open_listen_socket(const core::IpAddress& address,
                                                   std::uint16_t port);
/// The local port of a bound socket.
[[nodiscard]] std::uint16_t port_of_socket(int fd);

}  // namespace sluice::http
