#pragma once

#include <string>
#include <string_view>

namespace sluice::kni {

/// Whether kube-proxy makes a chain of that name, in any of its modes; not what is kubelet's.
[[nodiscard]] bool is_kube_proxy_chain(std::string_view name);

/// What iptables-restore --noflush must be told so that nothing of kube-proxy is left.
/// @param saved  what iptables-save printed. @return "": nothing is there.
[[nodiscard]] std::string removal_of(std::string_view saved);

}  // namespace sluice::kni
