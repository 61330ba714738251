#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "dataplane/core/net/address.h"
#include "dataplane/core/sink.h"
#include "kni/exception/netlink.h"

namespace sluice::kni {

// An announced address draws traffic to this node. What of it no worker claims goes to the host,
// and a host that routes would send it back to the router it came from: it would circle until its
// TTL ends (F21). So for packets that enter by a tap, and only for them, the host has an
// unreachable route for each announced address: a rule "iif slc-PORT" leads to a table of its own
// that holds nothing else. The host's own packets to such an address are not touched.

/// Routing table and rule priority; below the main table's 32766 and away from what CNIs use.
inline constexpr std::uint32_t kAnnounceTable = 20961;

/// Thread: one at a time.
class AnnounceRoutes {
 public:
  /// Makes the rules for these taps. Leftovers of an earlier run are removed first.
  [[nodiscard]] static core::Result<std::unique_ptr<AnnounceRoutes>> create(
      const std::vector<std::string>& taps);
  ~AnnounceRoutes();  ///< removes rules and routes
  AnnounceRoutes(const AnnounceRoutes&) = delete;
  AnnounceRoutes& operator=(const AnnounceRoutes&) = delete;

  /// Makes the announced addresses exactly these. @return the first failure.
  core::Result<void> set(const std::vector<core::IpAddress>& announced);

 private:
  explicit AnnounceRoutes(Netlink netlink) : netlink_(std::move(netlink)) {}
  int change_rule(std::uint16_t type, core::Family family, const std::string& tap);
  int change_route(std::uint16_t type, const core::IpAddress& address);
  void remove_rules();

  Netlink netlink_;
  std::vector<std::string> taps_;
  std::set<core::IpAddress> present_;
};

}  // namespace sluice::kni
