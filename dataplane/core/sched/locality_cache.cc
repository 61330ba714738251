#include "dataplane/core/sched/locality_cache.h"

#include <algorithm>
#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace sluice::core {

LocalityCache::Set& LocalityCache::find(ServiceSlot slot, bool local, const IpAddress& destination,
                                        std::uint32_t now_s) noexcept {
  std::array<std::uint8_t, 21> key;
  std::memcpy(key.data(), destination.data(), 16);
  std::memcpy(key.data() + 16, &slot, 4);
  key[20] = local ? 1 : 0;
  const std::uint64_t hash = XXH3_64bits_withSeed(key.data(), key.size(), seed_);
  Set* const ways = &sets_[(hash & (kSets / kWays - 1)) * kWays];
  Set* const end = ways + kWays;
  Set* set = std::find_if(ways, end, [&](const Set& s) {
    return s.used && s.slot == slot && s.local == local && s.destination == destination;
  });
  if (set == end) {
    set = std::find_if(ways, end, [](const Set& s) { return !s.used; });
  }
  if (set == end) {
    set = std::max_element(ways, end, [now_s](const Set& a, const Set& b) {
      return now_s - a.last_use_s < now_s - b.last_use_s;
    });
    set->used = false;
  }
  if (!set->used || now_s - set->last_use_s > kForgetSeconds) {
    *set = {destination, slot, local, true, 0, now_s, now_s, {}};
  }
  set->last_use_s = now_s;
  return *set;
}

}  // namespace sluice::core
