#pragma once

#include <linux/netlink.h>

#include <string>
#include <vector>

#include "kni/nftables/ruleset.h"

namespace sluice::kni::nft {

/// Builds the NEWRULE message that appends `rule` to `chain`, with libnftnl.
/// @param buffer  at least 64 KiB. @return the message in it.
const nlmsghdr* build_rule(std::vector<char>& buffer, core::Family family, const std::string& chain,
                           const Rule& rule);

/// Type of the user data that holds a rule's digest; nft ignores it.
inline constexpr std::uint8_t kDigestUserData = 200;

}  // namespace sluice::kni::nft
