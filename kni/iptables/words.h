#pragma once

#include <string>
#include <string_view>

#include "dataplane/core/fwd/forwarding_table.h"

namespace sluice::kni::ipt {

// Parts of rules that both the chains of one service port and the shared ones are made of.

/// A printed name as a comment may have it: whatever could end a comment or a line is replaced.
[[nodiscard]] std::string safe_name(std::string_view name);

/// `-m comment --comment "TEXT" `, or nothing. @param text  of safe characters.
[[nodiscard]] std::string comment(std::string_view text, bool wanted = true);

/// `-m tcp -p tcp `.
[[nodiscard]] std::string protocol_match(core::Protocol protocol);

/// `-m tcp -p tcp -d ADDRESS --dport PORT `.
[[nodiscard]] std::string frontend_match(core::Protocol protocol, const core::IpAddress& address,
                                         std::uint16_t port);

/// The source is a pod of this node, or is none; empty: no detector.
[[nodiscard]] std::string pod_local_match(const core::LocalDetector& detector, bool negate);

/// "0x4000".
[[nodiscard]] std::string mark_text(std::uint32_t bit);

/// The kind by which the service port owns a frontend, if it does.
[[nodiscard]] bool owns(const core::ForwardingTable& table, core::ServiceSlot slot,
                        const core::FrontendKey& key, core::FrontendKind kind);

}  // namespace sluice::kni::ipt
