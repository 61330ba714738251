#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/core/net/address.h"
#include "dataplane/core/sink.h"

namespace sluice::kni {

/// What a port's tap gets from the configuration.
struct InterfaceSetup {
  struct Address {
    core::IpAddress address;
    std::uint8_t length = 0;
  };
  struct Route {
    core::Cidr to;
    core::IpAddress via;
  };
  std::vector<Address> addresses;
  std::vector<Route> routes;
};

/// Brings `interface` up and gives it addresses and routes. They go with the interface. IPv6
/// addresses are usable at once: duplicate address detection would ask before a worker listens.
/// Errors: one line that names the address or route. What is there already stays. Thread: any.
[[nodiscard]] core::Result<void> set_up_interface(const std::string& interface,
                                                  const InterfaceSetup& setup);

/// Effective capabilities that workers on ordinary interfaces and taps need.
/// @return empty: all there; else one line that names what is missing.
[[nodiscard]] std::string missing_privilege();

}  // namespace sluice::kni
