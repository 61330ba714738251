#include "kni/nftables/slots.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "dataplane/core/sched/maglev.h"

namespace sluice::kni::nft {
namespace {

constexpr std::uint32_t kLargestMaglev = 65521;  // below where local slots begin (layout.h)

/// As workers fill theirs: by address and port, so every node has the same table.
SlotList maglev_list(const core::ServicePort& service, std::vector<core::EndpointIndex> list) {
  SlotList out;
  const auto identity = [&](core::EndpointIndex i) {
    return std::pair(service.endpoint(i).address, service.endpoint(i).port);
  };
  std::sort(list.begin(), list.end(), [&](core::EndpointIndex a, core::EndpointIndex b) {
    return identity(a) < identity(b);
  });
  const std::uint32_t size = maglev_slots_of(service);
  std::vector<core::MaglevOrder> orders;
  for (const core::EndpointIndex i : list) {
    const core::Endpoint& e = service.endpoint(i);
    const std::uint32_t weight = std::max<std::uint32_t>(e.weight, 1);
    orders.push_back(core::maglev_order(e.address, e.port, weight, size));
  }
  if (list.size() == 1) {
    out.slots = std::move(list);
  } else if (!list.empty()) {
    for (const std::uint16_t place : core::maglev_table(orders, size)) {
      out.slots.push_back(list[place]);
    }
  }
  out.places = static_cast<std::uint32_t>(out.slots.size());
  return out;
}

/// Repeats the list as often as it goes into its places.
void give_places(SlotList& list) {
  const auto once = static_cast<std::uint32_t>(list.slots.size());
  if (once == 0) {
    return;
  }
  list.places = std::max(std::bit_ceil(once), kLeastPlaces);
  list.slots.reserve(list.places);
  for (std::uint32_t i = once; i < list.places / once * once; ++i) {
    list.slots.push_back(list.slots[i - once]);
  }
}

SlotList weighted_list(const core::ServicePort& service,
                       const std::vector<core::EndpointIndex>& list) {
  SlotList out;
  std::uint64_t divisor = 0;
  std::uint64_t sum = 0;
  for (const core::EndpointIndex i : list) {
    const std::uint64_t weight = std::max<std::uint64_t>(service.endpoint(i).weight, 1);
    divisor = std::gcd(divisor, weight);
    sum += weight;
  }
  const std::uint64_t shares = divisor == 0 ? 0 : sum / divisor;
  const std::uint64_t most = std::max<std::uint64_t>(kMostSlots, list.size());
  out.rounded = shares > most;
  for (const core::EndpointIndex i : list) {
    const std::uint64_t weight = std::max<std::uint64_t>(service.endpoint(i).weight, 1);
    const std::uint64_t times =
        out.rounded ? std::max<std::uint64_t>(1, weight * most / sum) : weight / divisor;
    out.slots.insert(out.slots.end(), times, i);
  }
  return out;
}

}  // namespace

bool may_have_empty(std::uint32_t places) noexcept {
  return places >= kLeastPlaces && std::has_single_bit(places);
}

std::uint32_t maglev_slots_of(const core::ServicePort& service) noexcept {
  return service.maglev_size == 0 ? kMaglevSlots : std::min(service.maglev_size, kLargestMaglev);
}

SlotList make_slots(const core::ServicePort& service, const std::vector<core::EndpointIndex>& list,
                    Spread spread) {
  if (spread == Spread::kMaglev) {
    return maglev_list(service, list);
  }
  SlotList out;
  if (spread == Spread::kWeighted) {
    out = weighted_list(service, list);
  } else {
    out.slots = list;
  }
  give_places(out);
  return out;
}

}  // namespace sluice::kni::nft
