#pragma once

#include <array>
#include <cstring>

#include "dataplane/core/sched/maglev.h"
#include "dataplane/core/sched/scheduler.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace sluice::core {

// What mh, sh and dh have in common: the hash of an address, and of a port when asked for, names a
// slot of the table in the plan.

/// Hash of an address and port. Seed fixed: every node, restart and version gives the same.
/// @param port  0 when it shall have no part.
[[nodiscard]] inline std::uint64_t client_hash(const IpAddress& address,
                                               std::uint16_t port) noexcept {
  constexpr std::uint64_t kSeed = 0x736c75696365'0003;
  std::array<std::uint8_t, 18> key;
  std::memcpy(key.data(), address.data(), 16);
  key[16] = static_cast<std::uint8_t>(port >> 8);
  key[17] = static_cast<std::uint8_t>(port);
  return XXH3_64bits_withSeed(key.data(), key.size(), kSeed);
}

[[nodiscard]] inline std::uint32_t place_of_hash(const PickInput& input,
                                                 std::uint64_t hash) noexcept {
  const auto& slots = input.plan->slots;
  return slots[maglev_slot(hash, slots.size())];
}

/// The client's address; its port too with the flag mh-port or sh-port, but not when session
/// affinity must hold whatever the port (F53).
[[nodiscard]] inline std::uint32_t place_of_client(const PickInput& input) noexcept {
  const bool port = (input.service.scheduler_flags & kSchedPort) != 0 && !input.client_only;
  return place_of_hash(input, client_hash(input.tuple.src, port ? input.tuple.sport : 0));
}

}  // namespace sluice::core
