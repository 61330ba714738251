#include "dataplane/core/sched/maglev.h"

#include <algorithm>
#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace sluice::core {
namespace {

// Any two different numbers, the same on every node and in every version: a new pair moves flows.
constexpr std::uint64_t kOffsetSeed = 0x736c75696365'0001;
constexpr std::uint64_t kSkipSeed = 0x736c75696365'0002;

/// One candidate while the table is filled.
struct Turn {
  std::uint32_t next;  ///< slot to try
  std::uint32_t skip;
  std::uint32_t weight;
  std::uint64_t due;  ///< takes a slot in round r when r * weight has come so far
  std::uint16_t index;
};

}  // namespace

MaglevOrder maglev_order(const IpAddress& address, std::uint16_t port, std::uint32_t weight,
                         std::uint32_t size) noexcept {
  std::array<std::uint8_t, 18> name{};
  std::memcpy(name.data(), address.data(), 16);
  name[16] = static_cast<std::uint8_t>(port >> 8);
  name[17] = static_cast<std::uint8_t>(port);
  const std::uint64_t offset = XXH3_64bits_withSeed(name.data(), name.size(), kOffsetSeed);
  const std::uint64_t skip = XXH3_64bits_withSeed(name.data(), name.size(), kSkipSeed);
  return {static_cast<std::uint32_t>(offset % size),
          static_cast<std::uint32_t>(skip % (size - 1) + 1), weight};
}

std::vector<std::uint16_t> maglev_table(std::span<const MaglevOrder> orders, std::uint32_t size) {
  std::vector<std::uint16_t> table(size, kMaglevNobody);
  std::vector<Turn> turns;
  turns.reserve(orders.size());
  std::uint64_t heaviest = 0;
  for (std::size_t i = 0; i < orders.size() && i < kMaglevNobody; ++i) {
    const MaglevOrder& o = orders[i];
    if (o.weight != 0) {
      turns.push_back({o.offset, o.skip, o.weight, 0, static_cast<std::uint16_t>(i)});
      heaviest = std::max<std::uint64_t>(heaviest, o.weight);
    }
  }
  std::uint32_t left = turns.empty() ? 0 : size;
  for (std::uint64_t round = 0; left != 0; ++round) {
    for (auto turn = turns.begin(); turn != turns.end() && left != 0; ++turn) {
      if (round * turn->weight < turn->due) {
        continue;
      }
      turn->due += heaviest;
      while (table[turn->next] != kMaglevNobody) {
        turn->next += turn->skip;
        turn->next -= turn->next >= size ? size : 0;
      }
      table[turn->next] = turn->index;
      --left;
    }
  }
  return table;
}

}  // namespace sluice::core
