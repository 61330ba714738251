#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "dataplane/core/net/address.h"

struct nlmsghdr;

namespace sluice::kni {

// What rtnetlink says, as plain values. read_record() is the only place that reads its bytes.

struct LinkRecord {
  bool removed = false;
  std::uint32_t index = 0;
  std::string name;
  bool up = false;
};

struct AddressRecord {
  bool removed = false;
  std::uint32_t link = 0;
  core::IpAddress address;
  std::uint8_t length = 0;  ///< prefix length
  bool usable = true;       ///< false: duplicate address detection failed
};

struct RouteRecord {
  bool removed = false;
  core::Cidr prefix;
  std::uint32_t table = 0;
  std::uint32_t metric = 0;
  bool unicast = true;      ///< false: unreachable, blackhole, prohibit, throw
  std::uint32_t link = 0;   ///< 0: none
  std::optional<core::IpAddress> gateway;
};

struct NeighbourRecord {
  enum class State : std::uint8_t { kResolving, kValid, kPermanent, kFailed };
  bool removed = false;
  std::uint32_t link = 0;
  core::IpAddress address;
  core::MacAddress mac;     ///< when kValid or kPermanent
  State state = State::kResolving;
};

using Record =
    std::variant<std::monostate, LinkRecord, AddressRecord, RouteRecord, NeighbourRecord>;

/// Reads one rtnetlink message (RTM_NEW/DEL of LINK, ADDR, ROUTE, NEIGH).
/// @return monostate for everything that does not concern a host's forwarding: other families,
/// local, broadcast, multicast and cloned routes, bridge and proxy neighbours, malformed messages.
/// Thread: any.
[[nodiscard]] Record read_record(const nlmsghdr& message);

}  // namespace sluice::kni
