#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "dataplane/core/fwd/forwarding_table.h"
#include "dataplane/core/net/flow_key.h"

namespace sluice::core {

/// First packet of a new flow, as it arrived (before any translation).
struct Flow {
  FlowTuple tuple;
  /// Name of the interface it came in by; empty: made by a host process (no ingress interface).
  std::string_view ingress;
};

enum class FlowVerdict : std::uint8_t {
  kForward,  ///< translate to one of `eligible`
  kReject,   ///< refuse at once (N-1)
  kDrop,     ///< silence (N-2)
  kPass,     ///< not ours: to the host, or on its way unchanged (P-8)
};

/// Which rule decided; printed by explain, counted by the worker.
enum class DecisionReason : std::uint8_t {
  kClusterPolicy, kLocalPolicy, kShortCircuitPod, kShortCircuitHost,
  kNoEndpoints,          ///< section 9, left column
  kNoLocalEndpoints,     ///< section 9, right column
  kSourceNotAllowed,     ///< P-1
  kModeRefuses,          ///< the Service's forwarding mode cannot serve this frontend
  kStrayClusterIp,       ///< P-7 active cluster IP, other port
  kStrayServiceCidr,     ///< P-7 inside a ServiceCIDR
  kNotAFrontend,         ///< P-8
};

/// The executable meaning of the table for one flow. Views point into the table: use it only while
/// the table is held.
struct Decision {
  FlowVerdict verdict = FlowVerdict::kPass;
  DecisionReason reason = DecisionReason::kNotAFrontend;
  FrontendKind frontend = FrontendKind::kClusterIp;
  ServiceSlot slot = ServiceSlot::kNone;
  const ServicePort* service = nullptr;     ///< set whenever a service port was matched
  std::span<const EndpointIndex> eligible;  ///< candidates in sorted order; kForward: not empty
  const PickPlan* plan = nullptr;           ///< of `eligible`, when its scheduler has one
  bool masquerade = false;                  ///< marked by P-2 or P-5; hairpin comes on top
  std::uint32_t affinity_seconds = 0;
};

/// Applies the packet procedure of section 8 to a new flow.
/// Thread: any (reads an immutable table). Allocates nothing. Source: semantics 8, 9, 10, 11.
[[nodiscard]] Decision decide(const ForwardingTable& table, const Flow& flow) noexcept;

/// The same for a caller that has looked the destination up already.
/// @param exact  what `table.find_frontend()` says of the flow's destination.
[[nodiscard]] Decision decide(const ForwardingTable& table, const Flow& flow,
                              const std::optional<Frontend>& exact) noexcept;

/// P-9 for the chosen endpoint: marked, or hairpin (source IP equals the chosen local endpoint's).
[[nodiscard]] bool source_is_translated(const Decision& decision, const Flow& flow,
                                        const Endpoint& chosen) noexcept;

/// The exception to P-9: the host takes no packet that comes from its own address, and would answer
/// it past the workers. What it delivers keeps its source, unless the node has addresses of its own
/// for translation.
/// @param endpoint           its address family
/// @param delivered_by_host  packets for the endpoint leave by no port.
[[nodiscard]] inline bool host_keeps_source(const ForwardingTable& table, Family endpoint,
                                            bool delivered_by_host) noexcept {
  return delivered_by_host && table.node().of(endpoint).snat_addresses.empty();
}

/// Is a packet dropped whose source is an address of a Service? No host out there has that; an
/// answer would only be one more stray packet. What passes is judged by the host.
[[nodiscard]] inline bool drops_martian(const Decision& decision, bool from_wire) noexcept {
  return decision.verdict != FlowVerdict::kPass && from_wire;
}

/// The flow is forwarded, and its Service has no source ranges that could refuse another client.
[[nodiscard]] inline bool takes_any_source(const Decision& decision) noexcept {
  return decision.verdict == FlowVerdict::kForward && decision.service->allowed_sources.empty();
}

/// The mode the Service asks for if it counts for this flow: external frontends only; else kByRule.
[[nodiscard]] inline ForwardingMode asked_mode(const Decision& decision) noexcept {
  return decision.service != nullptr && decision.frontend != FrontendKind::kClusterIp
             ? decision.service->mode
             : ForwardingMode::kByRule;
}

/// The forwarding mode a flow gets (design section 5, "Forwarding modes").
[[nodiscard]] ForwardingMode effective_mode(const Decision& decision, const Flow& flow,
                                            const Endpoint& chosen) noexcept;

}  // namespace sluice::core
