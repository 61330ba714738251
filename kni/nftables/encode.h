#pragma once

#include "kni/nftables/batch.h"
#include "kni/nftables/plan.h"

namespace sluice::kni::nft {

/// Appends a table of one family; it may exist.
void encode_table(Batch& batch, core::Family family, const std::string& name = kTable);
/// Appends the end of a table, which must exist then.
void encode_table_end(Batch& batch, core::Family family, const std::string& name = kTable);
/// Appends what a plan says, in its order.
/// @param remembering  sets that rules fill, in both tables behind it: the more, the smaller the
/// new ones are, because the kernel takes memory for the whole size at once.
void encode(Batch& batch, const Plan& plan, std::size_t remembering = 0);

/// Sources that a new set that rules fill can hold, beside `remembering` such sets in all.
[[nodiscard]] std::uint32_t remembered_sources(std::size_t remembering) noexcept;

/// nft's number for the type of a key: six bits for each part.
[[nodiscard]] std::uint32_t key_type(const std::vector<Field>& key, core::Family family) noexcept;
/// Kernel's flags of a set (NFT_SET_*).
[[nodiscard]] std::uint32_t set_flags(SetSpec::Kind kind) noexcept;

}  // namespace sluice::kni::nft
