#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kni/iptables/runner.h"

namespace sluice::kni {
namespace ipt {

/// Whether kube-proxy makes a chain of that name, in any of its modes; not what is kubelet's.
[[nodiscard]] bool is_kube_proxy_chain(std::string_view name);

/// What iptables-restore --noflush must be told so that nothing of kube-proxy is left. Pure; fed
/// with what iptables-save prints, line by line.
class KubeProxyRemoval {
 public:
  void take(std::string_view line);
  /// Of the tables that were taken to their end; "": nothing is there.
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  void take_rule(std::string_view chain, std::string_view rule);
  void end_table();

  std::string table_;
  std::vector<std::string> chains_;  ///< of kube-proxy
  std::vector<std::string> hooks_;   ///< rules of built-in chains by which its packets come
  std::set<std::string> held_;       ///< chains that others' rules go to
  std::string text_;
};

}  // namespace ipt

/// Removes what a kube-proxy in mode iptables or ipvs has left in nat, filter and mangle, of both
/// families and of every variant of iptables that is there. Nothing there is no error.
/// @param kept  variants to leave alone, such as "iptables-nft".
/// Errors: one line, of all that could not be removed; the rest was.
[[nodiscard]] core::Result<void> remove_kube_proxy_rules(ipt::Runner& runner,
                                                         const std::vector<std::string>& kept);

}  // namespace sluice::kni
