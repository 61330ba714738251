#pragma once

#include "kni/nftables/batch.h"
#include "kni/nftables/plan.h"

namespace sluice::kni::nft {

/// Appends a table of one family; it may exist.
void encode_table(Batch& batch, core::Family family, const std::string& name = kTable);
/// Appends the end of a table, which must exist then.
void encode_table_end(Batch& batch, core::Family family, const std::string& name = kTable);
/// Appends what a plan says, in its order.
void encode(Batch& batch, const Plan& plan);

/// Appends the end of entries of the set that rules fill. @param keys  whole ones.
void encode_forgetting(Batch& batch, core::Family family, const std::vector<std::string>& keys);

/// nft's number for the type of a key: six bits for each part.
[[nodiscard]] std::uint32_t key_type(const std::vector<Field>& key, core::Family family) noexcept;
/// Kernel's flags of a set (NFT_SET_*).
[[nodiscard]] std::uint32_t set_flags(SetSpec::Kind kind) noexcept;

}  // namespace sluice::kni::nft
