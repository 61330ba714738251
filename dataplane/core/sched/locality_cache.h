#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "dataplane/core/fwd/forwarding_table.h"

namespace sluice::core {

/// Which endpoints serve a destination address (lblc, lblcr): a set of at most 16 for each address
/// and service port, least recently used sets make room.
///
/// Bounds as IPVS has them (ip_vs_lblc.c, ip_vs_lblcr.c): a set that nobody asked for in 24 hours
/// is forgotten. IPVS also trims a table above 16 entries a bucket every minute; here a new set
/// takes the place of the least recently used of its 8 neighbours. Endpoints are kept by id, and a
/// reader checks each against the candidates of the moment.
/// Thread: the owner worker. All memory (128 KiB) is taken at construction.
class LocalityCache {
 public:
  static constexpr std::uint32_t kForgetSeconds = 24 * 60 * 60;  ///< sysctl lblc(r)_expiration
  static constexpr std::size_t kMembers = 16;

  struct alignas(64) Set {
    IpAddress destination;
    ServiceSlot slot = ServiceSlot::kNone;
    bool local = false;
    bool used = false;
    std::uint8_t size = 0;
    std::uint32_t last_use_s = 0;
    std::uint32_t changed_s = 0;  ///< a member came or went
    std::array<EndpointId, kMembers> members{};

    [[nodiscard]] std::span<const EndpointId> all() const noexcept {
      return {members.data(), size};
    }
    /// A full set does not take it. Precondition: it is no member.
    void add(EndpointId id, std::uint32_t now_s) noexcept {
      if (size < kMembers) {
        members[size++] = id;
        changed_s = now_s;
      }
    }
    void remove_at(std::size_t i, std::uint32_t now_s) noexcept {
      members[i] = members[--size];
      changed_s = now_s;
    }
  };

  explicit LocalityCache(std::uint64_t seed) : sets_(kSets), seed_(seed) {}

  /// The set of a destination, empty if there was none. Counts as a use.
  Set& find(ServiceSlot slot, bool local, const IpAddress& destination,
            std::uint32_t now_s) noexcept;

 private:
  static constexpr std::size_t kSets = 1024;
  static constexpr std::size_t kWays = 8;
  std::vector<Set> sets_;
  std::uint64_t seed_;
};

}  // namespace sluice::core
