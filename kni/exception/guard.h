#pragma once

#include <memory>
#include <optional>
#include <string>

#include "dataplane/core/sink.h"
#include "kni/exception/netlink.h"

namespace sluice::kni {

// A port made from an ordinary interface shares it with the kernel. The kernel must not have an
// address there (it would answer for it, or lose it: af_xdp takes all frames) and must not make one
// itself (IPv6 link-local). With af_packet the kernel sees every frame too and would answer resets
// and port unreachables, so an nftables table drops them behind the point where af_packet took its
// copy. The table belongs to our socket (flag owner): it goes away with the process, also a killed
// one, and nobody else can change it.

/// Holds one shared interface while it lives.
/// Thread: main.
class InterfaceGuard {
 public:
  /// @param drop_frames  the kernel gets none of the interface's frames (af_packet).
  /// Errors: the interface holds an address (link-local IPv6 does not count); a sysctl or nftables
  /// refuses. Nothing is changed then.
  [[nodiscard]] static core::Result<std::unique_ptr<InterfaceGuard>> hold(
      const std::string& interface, bool drop_frames);
  ~InterfaceGuard();  ///< puts disable_ipv6 back and removes the table
  InterfaceGuard(const InterfaceGuard&) = delete;
  InterfaceGuard& operator=(const InterfaceGuard&) = delete;

 private:
  InterfaceGuard() = default;
  core::Result<void> disable_ipv6();
  core::Result<void> drop_ingress();

  std::string interface_;
  std::string ipv6_before_;         ///< of disable_ipv6; empty: not changed
  std::optional<Netlink> table_owner_;
};

/// The addresses the kernel has on an interface, link-local IPv6 ones left out, as text; empty:
/// none. Thread: any.
[[nodiscard]] core::Result<std::string> addresses_on(const std::string& interface);

}  // namespace sluice::kni
