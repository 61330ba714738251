#pragma once

#include "kni/nftables/batch.h"
#include "kni/nftables/plan.h"

namespace sluice::kni::nft {

/// Appends our table of one family; it may exist.
void encode_table(Batch& batch, core::Family family);
/// Appends the end of our table, which must exist then.
void encode_table_end(Batch& batch, core::Family family);
/// Appends what a plan says, in its order.
void encode(Batch& batch, const Plan& plan);

/// nft's number for the type of a key: six bits for each part.
[[nodiscard]] std::uint32_t key_type(const std::vector<Field>& key, core::Family family) noexcept;
/// Kernel's flags of a set (NFT_SET_*).
[[nodiscard]] std::uint32_t set_flags(SetSpec::Kind kind) noexcept;

}  // namespace sluice::kni::nft
