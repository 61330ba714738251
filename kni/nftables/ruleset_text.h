#pragma once

#include <string>

#include "kni/nftables/ruleset.h"

namespace sluice::kni::nft {

/// One rule in nft's syntax.
[[nodiscard]] std::string rule_text(core::Family family, const Rule& rule);

/// A whole table as `nft -f` takes it, sorted, for goldens and benchmarks.
[[nodiscard]] std::string ruleset_text(const Ruleset& ruleset);

}  // namespace sluice::kni::nft
