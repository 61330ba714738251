#include "kni/nftables/slots.h"

#include <algorithm>
#include <numeric>

namespace sluice::kni::nft {

SlotList make_slots(const core::ServicePort& service, const std::vector<core::EndpointIndex>& list,
                    bool weighted) {
  SlotList out;
  if (!weighted) {
    out.slots = list;
    return out;
  }
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

}  // namespace sluice::kni::nft
