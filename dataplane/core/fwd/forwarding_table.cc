#include "dataplane/core/fwd/forwarding_table.h"

#include <algorithm>
#include <cstring>

namespace sluice::core {
namespace {

// One round of a 64x64 -> 128 bit multiply and fold: every input bit reaches every output bit.
std::uint64_t mix(std::uint64_t a, std::uint64_t b) noexcept {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

}  // namespace

std::uint64_t FrontendKey::hash() const noexcept {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  std::memcpy(&low, address.data(), 8);
  std::memcpy(&high, address.data() + 8, 8);
  const std::uint64_t rest = std::uint64_t{port} |
                             std::uint64_t{static_cast<std::uint8_t>(protocol)} << 16 |
                             std::uint64_t{static_cast<std::uint8_t>(address.family())} << 24 |
                             std::uint64_t{node_port} << 32;
  // Odd constants with balanced bits (fractions of sqrt(2), sqrt(3), sqrt(5)).
  const std::uint64_t first = mix(low ^ 0x6a09e667f3bcc909ULL, high ^ 0xbb67ae8584caa73bULL);
  return mix(first ^ rest, 0x3c6ef372fe94f82bULL ^ (rest << 17));
}

const Endpoint* ServicePort::find_endpoint(const IpAddress& ip,
                                           std::uint16_t port_number) const noexcept {
  if (by_address.size() != endpoints.size()) {
    const auto at = std::find_if(endpoints.begin(), endpoints.end(), [&](const Endpoint& e) {
      return e.port == port_number && e.address == ip;
    });
    return at == endpoints.end() ? nullptr : &*at;
  }
  const auto before = [&](EndpointIndex i, const IpAddress& wanted) {
    const Endpoint& e = endpoint(i);
    const auto order = e.address <=> wanted;
    return order < 0 || (order == 0 && e.port < port_number);
  };
  const auto at = std::lower_bound(by_address.begin(), by_address.end(), ip, before);
  if (at == by_address.end()) {
    return nullptr;
  }
  const Endpoint& found = endpoint(*at);
  return found.port == port_number && found.address == ip ? &found : nullptr;
}

std::optional<Frontend> ForwardingTable::find_frontend(const FrontendKey& key) const noexcept {
  const std::uint64_t hash = key.hash();
  const Shard* shard = shards_[hash >> 56].get();
  if (shard == nullptr || shard->cells.empty()) {
    return std::nullopt;
  }
  const std::size_t mask = shard->cells.size() - 1;
  // Ends: load is at most 1/2, so an empty cell is met.
  for (std::size_t i = hash & mask;; i = (i + 1) & mask) {
    const Shard::Cell& cell = shard->cells[i];
    if (cell.value.slot == ServiceSlot::kNone) {
      return std::nullopt;
    }
    if (cell.key == key) {
      return cell.value;
    }
  }
}

}  // namespace sluice::core
