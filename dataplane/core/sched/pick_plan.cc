#include "dataplane/core/sched/pick_plan.h"

#include <algorithm>
#include <numeric>

#include "dataplane/core/sched/maglev.h"

namespace sluice::core {
namespace {

using List = std::vector<EndpointIndex>;
using PlanPtr = std::shared_ptr<const PickPlan>;

/// Everything a plan follows from is equal.
bool same_basis(const ServicePort& a, const ServicePort& b) {
  const auto same = [](const Endpoint& x, const Endpoint& y) {
    return x.address == y.address && x.port == y.port && x.weight == y.weight && x.id == y.id &&
           x.local == y.local;
  };
  return a.scheduler == b.scheduler && a.scheduler_flags == b.scheduler_flags &&
         a.maglev_size == b.maglev_size && a.cluster == b.cluster && a.local == b.local &&
         std::equal(a.endpoints.begin(), a.endpoints.end(), b.endpoints.begin(), b.endpoints.end(),
                    same);
}

void add_weights(const ServicePort& service, const List& list, PickPlan& plan) {
  plan.weights.reserve(list.size());
  for (const EndpointIndex i : list) {
    const std::uint16_t weight = service.endpoint(i).weight;
    plan.weights.push_back(weight);
    plan.heaviest = std::max(plan.heaviest, weight);
    plan.step = std::gcd(plan.step, weight);
  }
}

void add_ids(const ServicePort& service, const List& list, PickPlan& plan) {
  plan.ids.reserve(list.size());
  for (const EndpointIndex i : list) {
    plan.ids.push_back(service.endpoint(i).id);
  }
}

/// Vose's way: columns that have too little are filled up by those that have too much.
/// Source: M. D. Vose, "A linear algorithm for generating random numbers with a given
/// distribution", IEEE TSE 17 (1991). In integers: a column holds `sum`, an endpoint weight * n.
void add_alias(PickPlan& plan) {
  const auto n = static_cast<std::uint32_t>(plan.weights.size());
  const std::uint64_t sum =
      std::accumulate(plan.weights.begin(), plan.weights.end(), std::uint64_t{0});
  std::vector<std::uint64_t> left(n);
  std::vector<std::uint32_t> small;
  std::vector<std::uint32_t> large;
  for (std::uint32_t i = 0; i < n; ++i) {
    left[i] = std::uint64_t{plan.weights[i]} * n;
    (left[i] < sum ? small : large).push_back(i);
  }
  plan.alias.assign(n, {});
  while (!small.empty() && !large.empty()) {
    const std::uint32_t from = large.back();
    const std::uint32_t to = small.back();
    small.pop_back();
    // left < sum <= 2^48 here: shifting by 16 twice keeps it in 64 bits.
    const std::uint64_t high = (left[to] << 16) / sum;
    const std::uint64_t rest = (left[to] << 16) % sum;
    plan.alias[to] = {static_cast<std::uint32_t>(high << 16 | (rest << 16) / sum), from};
    left[from] -= sum - left[to];
    if (left[from] < sum) {
      large.pop_back();
      small.push_back(from);
    }
  }
  for (const std::vector<std::uint32_t>* full : {&small, &large}) {
    for (const std::uint32_t i : *full) {
      plan.alias[i] = {0xffffffff, i};
    }
  }
}

bool by_identity(const Endpoint* a, const Endpoint* b) {
  const auto order = a->address <=> b->address;
  return order < 0 || (order == 0 && a->port < b->port);
}

using Members = std::vector<const Endpoint*>;

Members candidates(const ServicePort& service, const List& list) {
  Members members;
  for (const EndpointIndex i : list) {
    members.push_back(&service.endpoint(i));
  }
  return members;
}

/// With the fallback flag also endpoints that take no flow now take part in filling the table:
/// their slots are given to others one by one afterwards and come back with them.
Members possible_candidates(const ServicePort& service, const List& list) {
  const bool local = &list == &service.local;
  Members members;
  for (const Endpoint& e : service.endpoints) {
    if (!local || e.local) {
      members.push_back(&e);
    }
  }
  return members;
}

/// Places of the list in the order of identities: the same on every node.
std::vector<std::uint16_t> places_by_identity(const ServicePort& service, const List& list) {
  std::vector<std::uint16_t> places(std::min<std::size_t>(list.size(), kMaglevNobody));
  std::iota(places.begin(), places.end(), std::uint16_t{0});
  std::sort(places.begin(), places.end(), [&](std::uint16_t a, std::uint16_t b) {
    return by_identity(&service.endpoint(list[a]), &service.endpoint(list[b]));
  });
  return places;
}

/// Gives each slot without a place that of another slot, chosen by hashing again and again. When
/// nearly all are without one, 32 tries may meet none: then any place, by the hash.
void fall_back(std::vector<std::uint16_t>& slots, const std::vector<std::uint16_t>& places) {
  constexpr int kTries = 32;
  const std::vector<std::uint16_t> filled = slots;
  for (std::uint32_t s = 0; s < slots.size(); ++s) {
    std::uint64_t seed = s;
    for (int n = 0; n <= kTries && slots[s] == kMaglevNobody; ++n) {
      seed += 0x9e3779b97f4a7c15ULL;  // SplitMix64
      std::uint64_t hash = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9ULL;
      hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebULL;
      hash ^= hash >> 31;
      slots[s] = n < kTries ? filled[maglev_slot(hash, filled.size())]
                            : places[maglev_slot(hash, places.size())];
    }
  }
}

/// @return false: no candidate of the list got a slot.
bool fill_slots(const ServicePort& service, const List& list, Members members, PickPlan& plan) {
  const std::uint32_t size = maglev_size_of(service);
  const bool weighted = picks_by_weight(service.scheduler);
  std::sort(members.begin(), members.end(), by_identity);
  std::vector<MaglevOrder> orders;
  orders.reserve(members.size());
  for (const Endpoint* e : members) {
    const std::uint32_t weight = weighted && e->weight != 0 ? e->weight : 1;
    orders.push_back(maglev_order(e->address, e->port, weight, size));
  }
  std::vector<std::uint16_t> place(service.endpoints.size(), kMaglevNobody);
  for (std::size_t p = 0; p < list.size() && p < kMaglevNobody; ++p) {
    place[static_cast<std::uint32_t>(list[p])] = static_cast<std::uint16_t>(p);
  }
  plan.slots = maglev_table(orders, size);
  bool any = false;
  for (std::uint16_t& slot : plan.slots) {
    slot = slot == kMaglevNobody
               ? slot
               : place[static_cast<std::size_t>(members[slot] - service.endpoints.data())];
    any = any || slot != kMaglevNobody;
  }
  return any;
}

void add_slots(const ServicePort& service, const List& list, PickPlan& plan) {
  const bool fallback = (service.scheduler_flags & kSchedFallback) != 0;
  if ((fallback && fill_slots(service, list, possible_candidates(service, list), plan)) ||
      fill_slots(service, list, candidates(service, list), plan)) {
    fall_back(plan.slots, places_by_identity(service, list));
  } else {
    plan.slots.clear();
  }
}

PlanPtr make_plan(const ServicePort& service, const List& list) {
  const SchedulerKind kind = service.scheduler;
  if (list.empty() || kind == SchedulerKind::kRandom || kind == SchedulerKind::kRr) {
    return nullptr;
  }
  auto plan = std::make_shared<PickPlan>();
  if (picks_by_hash(kind)) {
    add_slots(service, list, *plan);
    return plan;
  }
  add_weights(service, list, *plan);
  if (picks_by_load(kind)) {
    add_ids(service, list, *plan);
  }
  if (kind == SchedulerKind::kWrandom) {
    add_alias(*plan);
  }
  return plan;
}

}  // namespace

std::uint32_t maglev_size_of(const ServicePort& service) noexcept {
  return service.maglev_size != 0 ? service.maglev_size : kMaglevDefaultSize;
}

void plan_picks(ServicePort& service, const ServicePort* before) {
  if (before != nullptr && same_basis(*before, service)) {
    service.cluster_plan = before->cluster_plan;
    service.local_plan = before->local_plan;
    return;
  }
  service.cluster_plan.plan = make_plan(service, service.cluster);
  const bool same =
      service.local == service.cluster && (service.scheduler_flags & kSchedFallback) == 0;
  service.local_plan.plan = same ? service.cluster_plan.plan : make_plan(service, service.local);
}

}  // namespace sluice::core
