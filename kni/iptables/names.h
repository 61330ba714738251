#pragma once

#include <string>
#include <string_view>

#include "dataplane/core/fwd/forwarding_table.h"

namespace sluice::kni::ipt {

// Names of chains (section 19.2): 28 characters at most, the same on every node and after every
// start, because they are hashes of what they stand for.

inline constexpr const char* kServicesChain = "KUBE-SERVICES";
inline constexpr const char* kExternalServicesChain = "KUBE-EXTERNAL-SERVICES";
inline constexpr const char* kNodePortsChain = "KUBE-NODEPORTS";
inline constexpr const char* kPostroutingChain = "KUBE-POSTROUTING";
inline constexpr const char* kMarkChain = "KUBE-MARK-MASQ";
inline constexpr const char* kForwardChain = "KUBE-FORWARD";
inline constexpr const char* kFirewallChain = "KUBE-PROXY-FIREWALL";
/// Shared with kubelet; never removed.
inline constexpr const char* kSharedFirewallChain = "KUBE-FIREWALL";
/// Comment of the rule in it that makes loopback safe to route; kubelet's has the same.
inline constexpr const char* kLoopbackGuard = "block incoming localnet connections";
/// In each table; its absence tells that somebody has flushed.
inline constexpr const char* kCanaryChain = "KUBE-PROXY-CANARY";

/// Prefixes of chains that belong to one service port.
inline constexpr const char* kClusterPrefix = "KUBE-SVC-";
inline constexpr const char* kLocalPrefix = "KUBE-SVL-";
inline constexpr const char* kExternalPrefix = "KUBE-EXT-";
inline constexpr const char* kRangesPrefix = "KUBE-FW-";
inline constexpr const char* kEndpointPrefix = "KUBE-SEP-";

/// The chain has one of the prefixes above.
[[nodiscard]] bool is_service_chain(std::string_view chain) noexcept;

/// IT-1: first 16 characters of base32(SHA-256(printed name + protocol + endpoint)).
/// @param endpoint  "10.0.0.1:80", "[fd00::1]:80"; empty for the service port itself.
[[nodiscard]] std::string chain_hash(std::string_view printed_name, core::Protocol protocol,
                                     std::string_view endpoint = {});

}  // namespace sluice::kni::ipt
