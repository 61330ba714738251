#pragma once

#include <string>
#include <vector>

#include "dataplane/core/fwd/forwarding_table.h"
#include "dataplane/core/sink.h"
#include "kni/iptables/ruleset.h"

namespace sluice::kni::ipt {

// Theory of operation: the layout (section 19)
//
// Chains are kube-proxy's, by name and content. A packet's way:
//   nat PREROUTING, OUTPUT   KUBE-SERVICES: cluster IP -> KUBE-SVC (cluster list) or KUBE-SVL
//   (local
//                            list); external IP, VIP -> KUBE-EXT, or KUBE-FW when sources are
//                            limited; a local address -> KUBE-NODEPORTS -> KUBE-EXT
//   KUBE-EXT                 marks, takes the short cuts of P-5, goes to KUBE-SVC or KUBE-SVL
//   KUBE-SVC, KUBE-SVL       one rule per endpoint with the share that is left for it -> KUBE-SEP
//   KUBE-SEP                 marks a hairpin, remembers the source (affinity), translates
//   filter INPUT, FORWARD,   KUBE-PROXY-FIREWALL drops what KUBE-FW did not let through,
//     OUTPUT                 KUBE-SERVICES and KUBE-EXTERNAL-SERVICES refuse what has no endpoints
//   nat POSTROUTING          KUBE-POSTROUTING masquerades what is marked
//
// All of this is pure: tables in, rules out.

struct RenderOptions {
  bool localhost_node_ports = true;  ///< NP-6; IPv4 only
  bool drop_invalid = true;          ///< CT-10
  bool random_fully = true;          ///< Q-4: the binary knows it
  /// Beside workers (host-mode): the begin of their taps' names. What comes in by one was decided
  /// by a worker, and masquerading keeps off the workers' ports. Empty: the kernel forwards all.
  std::string taps;
};

/// More endpoints than this over all service ports of a family: a large cluster (SY-8).
inline constexpr std::size_t kLargeCluster = 1000;
[[nodiscard]] bool is_large(std::size_t endpoints) noexcept;
[[nodiscard]] std::size_t count_endpoints(const core::ForwardingTable& table,
                                          core::Family family) noexcept;

/// Service ports of a family by name and protocol, so that text does not depend on history.
[[nodiscard]] std::vector<core::ServiceSlot> ordered_slots(const core::ForwardingTable& table,
                                                           core::Family family);

/// The chains that belong to one service port alone; all are in table nat.
/// @param slot  has a block. @param comments  false: SY-8, a large cluster.
[[nodiscard]] Chains render_service(const core::ForwardingTable& table, core::ServiceSlot slot,
                                    bool comments);

/// The chains that all service ports share (IT-4), each present even when it is empty.
/// @param slots  ordered_slots().
[[nodiscard]] Ruleset render_shared(const core::ForwardingTable& table, core::Family family,
                                    const std::vector<core::ServiceSlot>& slots,
                                    const RenderOptions& options);

/// Everything.
[[nodiscard]] Ruleset render(const core::ForwardingTable& table, core::Family family,
                             const RenderOptions& options);

/// Hooks in the order in which they are put on top of their chains.
[[nodiscard]] std::vector<Hook> render_hooks(const core::NodePart& node, core::Family family,
                                             const RenderOptions& options);

/// NP-6: node ports answer on loopback addresses.
[[nodiscard]] bool has_localhost_node_ports(const core::NodePart& node, core::Family family,
                                            const RenderOptions& options);

/// What chains of service ports follow from differs, so all of them must be written.
[[nodiscard]] bool service_chains_differ(const core::NodePart& before, const core::NodePart& after,
                                         core::Family family);

/// Schedulers and modes that rules express as they are meant.
[[nodiscard]] core::Capabilities iptables_capabilities();

/// The share that a rule takes of what reaches it, with 10 decimals (19.4, F75).
/// @param weight 1.. @param left  sum of the weights from this rule on, >= weight.
[[nodiscard]] std::string probability_text(std::uint64_t weight, std::uint64_t left);

}  // namespace sluice::kni::ipt
