// Topology hints, production: rules TH-1..TH-9 (section 23).
//
// Theory of operation of kAuto. Every zone with eligible nodes has an allocation: the share of the
// endpoints that fits its share of the CPU. Slices that nobody touches keep their hints while they
// are good; in the others each ready endpoint is first hinted to its own zone, then zones with more
// than their share give single endpoints to zones with less. Example: CPU 2/3 in a, 1/3 in b, three
// endpoints in each: desired is 4 and 2, so one endpoint of b is hinted to a.
#include "control/compile/hints.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

namespace sluice::compile {
namespace {

constexpr double kOverloadThreshold = 0.2;  // TH-5: a zone may get 20 % more than its share

struct Allocation {
  double desired = 0;
  std::size_t minimum = 0;
  std::size_t maximum = 0;
};
using Allocations = std::map<std::string, Allocation>;

bool is_ready(const model::SliceEndpoint& e) {
  return e.ready.value_or(false);
}  // TH-9

bool has_hints(const model::SliceEndpoint& e) {
  return !e.for_zones.empty() || !e.for_nodes.empty();
}

void clear_hints(model::SliceEndpoint& e) {
  e.for_zones.clear();
  e.for_nodes.clear();
}

/// Moves the unchanged slices that `needs_rewrite` names to the rewritten ones.
template <class Predicate>
void take_over(HintSlices& slices, Predicate needs_rewrite) {
  std::vector<model::EndpointSlice> kept;
  for (model::EndpointSlice& slice : slices.unchanged) {
    (needs_rewrite(slice) ? slices.rewritten : kept).push_back(std::move(slice));
  }
  slices.unchanged = std::move(kept);
}

void remove_all_hints(HintSlices& slices) {
  take_over(slices, [](const model::EndpointSlice& s) {
    return std::any_of(s.endpoints.begin(), s.endpoints.end(), has_hints);
  });
  for (model::EndpointSlice& slice : slices.rewritten) {
    std::for_each(slice.endpoints.begin(), slice.endpoints.end(), clear_hints);
  }
}

HintPlan withdraw(HintPlan plan, std::string reason) {
  remove_all_hints(plan.slices);
  plan.withdrawn = std::move(reason);
  plan.per_zone.clear();
  plan.moved = 0;
  return plan;
}

/// TH-2: the hints of a ready endpoint under trafficDistribution.
void hint_own_place(HintMode mode, model::SliceEndpoint& e) {
  clear_hints(e);
  if (e.zone && !e.zone->empty()) {
    e.for_zones.push_back(*e.zone);
  }
  if (mode == HintMode::kSameNode && e.node_name && !e.node_name->empty()) {
    e.for_nodes.push_back(*e.node_name);
  }
}

HintPlan plan_by_distribution(HintMode mode, HintPlan plan) {
  const auto rehint = [mode](model::EndpointSlice& slice) {
    for (model::SliceEndpoint& e : slice.endpoints) {
      if (is_ready(e)) {
        hint_own_place(mode, e);
      }
    }
  };
  take_over(plan.slices, [&](const model::EndpointSlice& slice) {
    model::EndpointSlice wanted = slice;
    rehint(wanted);
    return wanted != slice;
  });
  std::for_each(plan.slices.rewritten.begin(), plan.slices.rewritten.end(), rehint);
  return plan;
}

std::size_t count_ready(const std::vector<model::EndpointSlice>& slices) {
  std::size_t n = 0;
  for (const model::EndpointSlice& slice : slices) {
    n += static_cast<std::size_t>(
        std::count_if(slice.endpoints.begin(), slice.endpoints.end(), is_ready));
  }
  return n;
}

/// TH-5. @return nullopt: the minimums do not fit.
std::optional<Allocations> allocate(const ZoneRatios& ratios, std::size_t endpoints) {
  Allocations out;
  std::size_t minimums = 0;
  for (const auto& [zone, ratio] : ratios) {
    const double desired = ratio * static_cast<double>(endpoints);
    const double minimum = std::ceil(desired / (1 + kOverloadThreshold));
    out[zone] = {std::max(desired, minimum), static_cast<std::size_t>(minimum), 0};
    minimums += static_cast<std::size_t>(minimum);
    if (minimums > endpoints) {
      return std::nullopt;
    }
  }
  for (auto& [zone, allocation] : out) {
    allocation.maximum = allocation.minimum + endpoints - minimums;
  }
  return out;
}

/// TH-6. @return nullopt: the slice has to be rewritten.
std::optional<HintsPerZone> usable_hints(const model::EndpointSlice& slice,
                                         const Allocations& allocations,
                                         const HintsPerZone& so_far) {
  HintsPerZone mine;
  for (const model::SliceEndpoint& e : slice.endpoints) {
    if (!is_ready(e)) {
      continue;
    }
    if (e.for_zones.empty()) {
      return std::nullopt;
    }
    for (const std::string& zone : e.for_zones) {
      if (!allocations.contains(zone)) {
        return std::nullopt;
      }
      ++mine[zone];
    }
  }
  for (const auto& [zone, n] : mine) {
    const auto at = so_far.find(zone);
    if ((at == so_far.end() ? 0 : at->second) + n > allocations.at(zone).maximum) {
      return std::nullopt;
    }
  }
  return mine;
}

void keep_good_slices(const Allocations& allocations, HintPlan& plan) {
  take_over(plan.slices, [&](const model::EndpointSlice& slice) {
    const auto hints = usable_hints(slice, allocations, plan.per_zone);
    if (!hints) {
      return true;
    }
    for (const auto& [zone, n] : *hints) {
      plan.per_zone[zone] += n;
    }
    return false;
  });
}

/// First step of TH-7. @return false: a ready endpoint has no zone (TH-4).
bool hint_own_zones(HintPlan& plan) {
  for (model::EndpointSlice& slice : plan.slices.rewritten) {
    for (model::SliceEndpoint& e : slice.endpoints) {
      clear_hints(e);
      if (!is_ready(e)) {
        continue;
      }
      if (!e.zone || e.zone->empty()) {
        return false;
      }
      e.for_zones.push_back(*e.zone);
      ++plan.per_zone[*e.zone];
    }
  }
  return true;
}

/// Endpoints that a zone gives or receives.
using Moves = std::map<std::string, std::size_t>;

std::map<std::string, double>::iterator largest(std::map<std::string, double>& of) {
  return std::max_element(of.begin(), of.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; });
}

/// Second step of TH-7. Of equal zones the smallest name is taken, so that the answer is one.
std::pair<Moves, Moves> balance(const Allocations& allocations, const HintsPerZone& hints) {
  std::map<std::string, double> surplus, deficit;
  for (const auto& [zone, allocation] : allocations) {
    const auto at = hints.find(zone);
    const double over =
        (at == hints.end() ? 0.0 : static_cast<double>(at->second)) - allocation.desired;
    if (over > 0) {
      surplus[zone] = over;
    } else if (over < 0) {
      deficit[zone] = -over;
    }
  }
  std::pair<Moves, Moves> out;
  while (!surplus.empty() && !deficit.empty()) {
    const auto from = largest(surplus);
    const auto to = largest(deficit);
    const double most = std::max(from->second, to->second);
    if (std::min(from->second, to->second) < 0.5 || most < 1) {
      break;
    }
    ++out.first[from->first];
    ++out.second[to->first];
    from->second -= 1;
    to->second -= 1;
  }
  return out;
}

/// Third step of TH-7.
void apply_moves(Moves giving, Moves receiving, HintPlan& plan) {
  for (model::EndpointSlice& slice : plan.slices.rewritten) {
    for (model::SliceEndpoint& e : slice.endpoints) {
      const auto from = e.for_zones.empty() ? giving.end() : giving.find(e.for_zones.front());
      if (from == giving.end() || receiving.empty()) {
        continue;
      }
      const auto to = receiving.begin();
      --plan.per_zone[from->first];
      ++plan.per_zone[to->first];
      ++plan.moved;
      e.for_zones = {to->first};
      if (--to->second == 0) {
        receiving.erase(to);
      }
      if (--from->second == 0) {
        giving.erase(from);
      }
    }
  }
}

HintPlan plan_auto(HintPlan plan, const std::optional<ZoneRatios>& ratios) {
  if (!ratios || ratios->size() < 2) {
    return withdraw(std::move(plan), "insufficient node info");
  }
  const std::size_t n = count_ready(plan.slices.rewritten) + count_ready(plan.slices.unchanged);
  if (n < ratios->size()) {
    return withdraw(std::move(plan), "fewer endpoints than zones");
  }
  const auto allocations = allocate(*ratios, n);
  if (!allocations) {
    return withdraw(std::move(plan), "minimums exceed endpoints");
  }
  keep_good_slices(*allocations, plan);
  if (!hint_own_zones(plan)) {
    return withdraw(std::move(plan), "endpoint without zone");
  }
  auto [giving, receiving] = balance(*allocations, plan.per_zone);
  apply_moves(std::move(giving), std::move(receiving), plan);
  return plan;
}

}  // namespace

HintMode hint_mode(const model::Service& service) {
  for (const char* key :
       {"service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode"}) {
    const auto at = service.annotations.find(key);
    if (at != service.annotations.end()) {
      if (at->second == "Auto" || at->second == "auto") {
        return HintMode::kAuto;
      }
      break;  // the deprecated one has precedence, whatever it says
    }
  }
  const std::string_view wish = service.traffic_distribution;
  if (wish == "PreferSameZone" || wish == "PreferClose") {
    return HintMode::kSameZone;
  }
  return wish == "PreferSameNode" ? HintMode::kSameNode : HintMode::kNone;
}

std::optional<ZoneRatios> zone_ratios(std::span<const HintNode> nodes) {
  std::map<std::string, std::int64_t> cpu;
  std::int64_t total = 0;
  for (const HintNode& node : nodes) {
    if (!node.ready || node.labels.contains("node-role.kubernetes.io/control-plane") ||
        node.labels.contains("node-role.kubernetes.io/master")) {
      continue;
    }
    if (node.zone.empty() || node.milli_cpu <= 0) {
      return std::nullopt;
    }
    cpu[node.zone] += node.milli_cpu;
    total += node.milli_cpu;
  }
  if (cpu.size() < 2) {
    return std::nullopt;
  }
  ZoneRatios ratios;
  for (const auto& [zone, milli] : cpu) {
    ratios[zone] = static_cast<double>(milli) / static_cast<double>(total);
  }
  return ratios;
}

HintPlan plan_hints(HintMode mode, HintSlices slices, const std::optional<ZoneRatios>& ratios) {
  HintPlan plan;
  plan.slices = std::move(slices);
  switch (mode) {
    case HintMode::kNone:
      remove_all_hints(plan.slices);
      return plan;
    case HintMode::kAuto:
      return plan_auto(std::move(plan), ratios);
    case HintMode::kSameZone:
    case HintMode::kSameNode:
      return plan_by_distribution(mode, std::move(plan));
  }
  return plan;
}

bool hints_overloaded(const HintsPerZone& stored, const ZoneRatios& ratios) {
  if (stored.empty()) {
    return false;
  }
  std::size_t total = 0;
  for (const auto& [zone, n] : stored) {
    total += n;
  }
  return ratios.empty() || std::any_of(ratios.begin(), ratios.end(), [&](const auto& share) {
           const auto at = stored.find(share.first);
           const double least =
               std::ceil(static_cast<double>(total) * share.second / (1 + kOverloadThreshold));
           return at == stored.end() || static_cast<double>(at->second) < least;
         });
}

}  // namespace sluice::compile
