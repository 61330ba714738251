#pragma once

#include <string>
#include <vector>

#include "dataplane/core/sink.h"

namespace sluice::kni {

/// Removes what a kube-proxy in mode iptables or ipvs has left in nat, filter and mangle, of both
/// families and of every variant of iptables that is installed. Nothing there is no error.
/// @param kept  variants to leave alone, such as "iptables-nft".
/// Errors: one line, the first of what could not be removed; the rest was.
[[nodiscard]] core::Result<void> remove_kube_proxy_rules(const std::vector<std::string>& kept);

}  // namespace sluice::kni
