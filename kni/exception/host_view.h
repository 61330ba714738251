#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kni/exception/records.h"

namespace sluice::kni {

/// An address of the host, on whichever interface.
struct HostAddress {
  core::IpAddress address;
  std::string interface;
  std::uint8_t length = 0;
  std::optional<std::size_t> port;  ///< index of the port whose tap has it
  bool operator==(const HostAddress&) const = default;
};

/// A route as the ports see it.
struct HostRoute {
  core::Cidr prefix;
  std::optional<std::size_t> port;         ///< absent: by another interface, or refused: the host's
  std::optional<core::IpAddress> gateway;  ///< absent: on link
  bool operator==(const HostRoute&) const = default;
};

/// A neighbour on a port's tap.
struct HostNeighbour {
  std::size_t port = 0;
  core::IpAddress address;
  core::MacAddress mac;
  enum class State : std::uint8_t {
    kUnresolved,
    kReachable,
    kPermanent,  ///< reachable, by the administrator's word
    kFailed,
    kOwn
  } state = State::kUnresolved;
  bool operator==(const HostNeighbour&) const = default;
};

/// What became of a port's tap.
enum class TapLink : std::uint8_t { kUp, kDown, kGone };
struct TapChange {
  std::size_t port = 0;
  TapLink link = TapLink::kGone;
  bool operator==(const TapChange&) const = default;
};

/// What the records of rtnetlink add up to. Pure: no socket, no clock.
/// Routes are taken as whole dumps, because the kernel does not announce every route that goes with
/// a link or an address; routes_stale() says when one is due.
/// Thread: one.
class HostView {
 public:
  /// @param taps  interface name of each port's tap, by port index.
  explicit HostView(std::vector<std::string> taps)
      : taps_(std::move(taps)), seen_(taps_.size()) {}

  /// Takes one record; a route only marks the routes stale.
  void apply(const Record& record);
  /// Forgets everything: before a full dump.
  void clear();
  /// Replaces all routes by a dump's.
  void set_routes(const std::vector<RouteRecord>& routes);

  [[nodiscard]] bool routes_stale() const noexcept { return routes_stale_; }
  /// True once after addresses (or names of their interfaces) changed.
  [[nodiscard]] bool take_addresses_changed() noexcept {
    return std::exchange(addresses_changed_, false);
  }
  /// True once after set_routes() brought something new.
  [[nodiscard]] bool take_routes_changed() noexcept {
    return std::exchange(routes_changed_, false);
  }
  /// Neighbours on taps that changed since the last call.
  [[nodiscard]] std::vector<HostNeighbour> take_neighbour_changes();

  /// Taps that are not as they were at the last call, or were down or away in between and so have
  /// lost addresses and routes. The first call has all of them.
  [[nodiscard]] std::vector<TapChange> take_tap_changes();

  /// Usable addresses but loopback ones, in a stable order.
  [[nodiscard]] std::vector<HostAddress> addresses() const;
  /// Routes of the main table; of equal prefixes the one with the smaller metric first.
  [[nodiscard]] const std::vector<HostRoute>& routes() const noexcept { return routes_; }
  /// State of one neighbour now; kOwn when the host has the address itself.
  [[nodiscard]] HostNeighbour neighbour(std::size_t port, const core::IpAddress& address) const;
  /// Interface index of a port's tap; 0: it does not exist.
  [[nodiscard]] std::uint32_t link_of(std::size_t port) const noexcept;

 private:
  struct Link {
    std::string name;
    bool up = false;
    std::optional<std::size_t> port;
  };
  /// What take_tap_changes() said of a tap, and whether it may have changed since.
  struct SeenTap {
    std::optional<TapLink> told;
    bool moved = true;
  };
  using OnLink = std::pair<std::uint32_t, core::IpAddress>;
  [[nodiscard]] std::optional<std::size_t> port_of(std::uint32_t link) const noexcept;
  void apply_link(const LinkRecord& link);
  void tap_moved(std::optional<std::size_t> port) noexcept;
  [[nodiscard]] TapLink tap_link(std::size_t port) const noexcept;
  void apply_address(const AddressRecord& address);
  void apply_neighbour(const NeighbourRecord& neighbour);

  std::vector<std::string> taps_;
  std::vector<SeenTap> seen_;  ///< by port
  bool taps_moved_ = true;     ///< one of them may have changed
  std::map<std::uint32_t, Link> links_;
  std::map<OnLink, std::uint8_t> addresses_;
  std::map<OnLink, NeighbourRecord> neighbours_;
  std::vector<HostNeighbour> neighbour_changes_;
  std::vector<HostRoute> routes_;
  bool routes_stale_ = true;
  bool routes_changed_ = false;
  bool addresses_changed_ = false;
};

}  // namespace sluice::kni
