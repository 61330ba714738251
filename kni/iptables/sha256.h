#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace sluice::kni::ipt {

/// SHA-256 of a text (FIPS 180-4). For names only. Thread: any.
[[nodiscard]] std::array<std::uint8_t, 32> sha256(std::string_view text) noexcept;

}  // namespace sluice::kni::ipt
