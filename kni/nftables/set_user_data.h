#pragma once

#include <string>

#include "kni/nftables/ruleset.h"

namespace sluice::kni::nft {

// What nft keeps with a set or element to print it: byte orders, where the types come from,
// comments. The kernel does not look at it.

[[nodiscard]] std::string set_user_data(const SetSpec& spec, core::Family family);
/// @param comment  at most 127 bytes.
[[nodiscard]] std::string comment_user_data(const std::string& comment);
/// The comment in an element's user data; "" when there is none.
[[nodiscard]] std::string read_comment(std::string_view user_data);
/// The digest in a rule's user data; 0: not a rule of ours.
[[nodiscard]] std::uint64_t read_digest(std::string_view user_data);

}  // namespace sluice::kni::nft
