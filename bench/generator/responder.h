#pragma once

#include <cstdint>

#include "dataplane/core/net/address.h"

namespace sluice::bench {

/// Turns an ARP request or a neighbour solicitation into its answer, in place: every address of the
/// link is the generator.
/// @param length  of the frame; grows to hold the answer (a solicitation may lack an option).
/// @return false when the frame is neither; it is unchanged then.
[[nodiscard]] bool answer_neighbour(std::uint8_t* frame, std::uint32_t& length,
                                    const core::MacAddress& own) noexcept;

}  // namespace sluice::bench
