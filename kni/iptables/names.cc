#include "kni/iptables/names.h"

#include <algorithm>
#include <array>

#include "kni/iptables/sha256.h"

namespace sluice::kni::ipt {
namespace {

constexpr std::size_t kHashLength = 16;
constexpr char kBase32[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

}  // namespace

bool is_service_chain(std::string_view chain) noexcept {
  constexpr std::array kPrefixes = {kClusterPrefix, kLocalPrefix, kExternalPrefix, kRangesPrefix,
                                    kEndpointPrefix};
  return std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [&](const char* prefix) { return chain.starts_with(prefix); });
}

std::string chain_hash(std::string_view printed_name, core::Protocol protocol,
                       std::string_view endpoint) {
  std::string text(printed_name);
  text += core::protocol_name(protocol);
  text += endpoint;
  const std::array<std::uint8_t, 32> digest = sha256(text);
  std::string out;
  std::uint32_t bits = 0;
  unsigned held = 0;
  for (std::size_t i = 0; out.size() < kHashLength; ++i) {
    bits = bits << 8 | digest[i];
    held += 8;
    while (held >= 5 && out.size() < kHashLength) {
      held -= 5;
      out += kBase32[bits >> held & 31];
    }
  }
  return out;
}

}  // namespace sluice::kni::ipt
