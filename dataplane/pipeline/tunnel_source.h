#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>

#include "dataplane/core/net/flow_key.h"
#include "dataplane/pipeline/worker_tables.h"

namespace sluice::pipeline {

/// Hash of the client's side of a flow, the same on every worker and node: picks the outer source
/// address and the flow label of a tunnel, so that a backend's NIC spreads what one gateway sends.
template <class F>
[[nodiscard]] inline std::uint64_t tunnel_hash(const typename F::Address& client,
                                               core::Be16 port) noexcept {
  std::uint64_t h = 0;
  if constexpr (F::kFamily == core::Family::kIpv4) {
    h = client.raw();
  } else {
    std::uint64_t half[2];
    std::memcpy(half, client.bytes.data(), 16);
    h = half[0] * 0x9e3779b97f4a7c15ULL ^ half[1];
  }
  h = (std::rotl(h, 16) ^ port.host()) * 0xd6e8feb86659fd93ULL;
  return std::rotl(h, 32);  // the better half of the product lowest
}

/// Outer source addresses of tunnels over one family: the whole prefix `tunnel_sources` of the node
/// part, or the address of the port that the packet leaves by. Made when the tables change.
/// Thread: the worker's.
template <class Outer>
class TunnelSources {
 public:
  using Address = typename Outer::Address;

  void take_over(const WorkerTables& tables) noexcept {
    const auto& prefix = tables.table->node().of(Outer::kFamily).tunnel_sources;
    const std::uint64_t width = Outer::kFamily == core::Family::kIpv4 ? 32 : 64;
    for (std::size_t p = 0; p < kMaxPorts; ++p) {
      const core::IpAddress* own =
          own_address(tables, static_cast<PortIndex>(p), Outer::kFamily);
      const core::IpAddress* from = prefix ? &prefix->address() : own;
      known_[p] = from != nullptr;
      if (known_[p]) {
        std::memcpy(&base_[p], from->data(), sizeof(Address));
      }
    }
    const std::uint64_t free_bits =
        prefix ? (Outer::kFamily == core::Family::kIpv4 ? 32u : 128u) - prefix->length() : 0;
    mask_ = free_bits == 0       ? 0
            : free_bits >= width ? ~std::uint64_t{0} >> (64 - width)
                                 : (std::uint64_t{1} << free_bits) - 1;
  }

  /// @return false: no address of this family to send from.
  [[nodiscard]] bool choose(PortIndex port, std::uint64_t hash, Address& out) const noexcept {
    const std::size_t p = static_cast<std::size_t>(port) % kMaxPorts;
    out = base_[p];
    const std::uint64_t host = hash & mask_;
    if constexpr (Outer::kFamily == core::Family::kIpv4) {
      out = Address::from_host(out.host() | static_cast<std::uint32_t>(host));
    } else {
      for (std::size_t n = 0; mask_ != 0 && n < 8; ++n) {
        out.bytes[15 - n] = static_cast<std::uint8_t>(out.bytes[15 - n] | host >> (8 * n));
      }
    }
    return known_[p];
  }

 private:
  std::array<Address, kMaxPorts> base_{};
  std::array<bool, kMaxPorts> known_{};
  std::uint64_t mask_ = 0;  ///< bits of the host part that vary
};

/// True when tunnels may be sent from `address`: errors about them come back to it.
[[nodiscard]] inline bool is_tunnel_source(const WorkerTables& tables,
                                           const core::IpAddress& address) noexcept {
  const auto& prefix = tables.table->node().of(address.family()).tunnel_sources;
  return prefix ? prefix->contains(address) : is_host_address(tables, address);
}

}  // namespace sluice::pipeline
