#pragma once

#include <string_view>

#include "dataplane/core/conn/entry.h"
#include "dataplane/core/fwd/forwarding_table.h"

namespace sluice::server {

// The words of the Node service, in the language of kubectl and ipvsadm.

constexpr std::string_view family_text(core::Family family) {
  return family == core::Family::kIpv4 ? "IPv4" : "IPv6";
}

constexpr std::string_view mode_text(core::ForwardingMode mode) {
  constexpr std::string_view kNames[] = {"rule", "nat", "fullnat", "dr", "ipip"};
  return kNames[static_cast<std::size_t>(mode)];
}

constexpr std::string_view kind_text(core::FrontendKind kind) {
  constexpr std::string_view kNames[] = {"ClusterIP", "ExternalIP", "LoadBalancer", "NodePort"};
  return kNames[static_cast<std::size_t>(kind)];
}

constexpr std::string_view empty_text(core::EmptyVerdict verdict) {
  return verdict == core::EmptyVerdict::kReject ? "reject" : "drop";
}

/// States as ipvsadm prints them, where it has the state.
constexpr std::string_view state_text(core::ConnState state) {
  constexpr std::string_view kNames[] = {
      "FREE",  "PENDING", "SYN_SENT", "SYN_RECV",  "ESTABLISHED",      "FIN_WAIT",     "TIME_WAIT",
      "CLOSE", "UDP_NEW", "UDP",      "SCTP_INIT", "SCTP_ESTABLISHED", "SCTP_SHUTDOWN"};
  return kNames[static_cast<std::size_t>(state)];
}

constexpr std::string_view endpoint_state_text(const core::Endpoint& endpoint) {
  if (endpoint.terminating) {
    return endpoint.serving ? "draining" : "terminating";
  }
  return endpoint.ready ? "ready" : "not-ready";
}

}  // namespace sluice::server
