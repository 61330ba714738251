#pragma once

#include <string>

#include "dataplane/core/fwd/forwarding_table.h"

namespace sluice::bench {

// The same Services as others write them: kube-proxy's layouts, made by us from a table (sections 18
// and 19 of the rule book), and what a program does with a file of them.

/// `ip kube-proxy` as kube-proxy's nftables mode has it: a chain per Service, an anonymous map in
/// each; with session affinity a chain and a set per endpoint.
[[nodiscard]] std::string nft_chains(const core::ForwardingTable& table);
/// One Service's chain anew.
[[nodiscard]] std::string nft_one_chain(const core::ForwardingTable& table, std::size_t service);

/// kube-proxy's chains for iptables-restore.
[[nodiscard]] std::string iptables_chains(const core::ForwardingTable& table);
[[nodiscard]] std::string iptables_one_chain(const core::ForwardingTable& table,
                                             std::size_t service);

/// How a program fared.
struct PeerRun {
  double wall = -1;  ///< ms; < 0: not in time, or it failed
  std::string failure;  ///< which of them, when wall < 0
  double cpu = 0;    ///< ms, with the kernel's share
  long mib = 0;      ///< its largest size
};
/// Runs a command with `input` on its standard input, within so many seconds and 4 GiB (one that
/// gets no more memory fails).
[[nodiscard]] PeerRun run_peer(const std::string& command, const std::string& input,
                               unsigned seconds);

}  // namespace sluice::bench
