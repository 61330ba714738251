#include "kni/nftables/render.h"

#include <algorithm>
#include <iterator>

#include "dataplane/core/fwd/diff.h"
#include "kni/nftables/room.h"
#include "kni/nftables/service.h"

namespace sluice::kni::nft {
namespace {

using core::Family;
using core::ForwardingTable;
using core::ServiceSlot;

constexpr Family kFamilies[] = {Family::kIpv4, Family::kIpv6};

void add_own(Ruleset& ruleset, ServicePieces& pieces) {
  const char* set = nullptr;
  Elements* elements = nullptr;
  for (ServicePieces::Element& e : pieces.elements) {
    if (e.set != set) {  // long runs are of one set
      set = e.set;
      elements = &ruleset.elements[set];
    }
    elements->emplace_back(std::move(e.key), std::move(e.value));
  }
  ruleset.chains.merge(pieces.chains);
}

/// Everything of one side of a change, counted.
struct Touched {
  int affinity = 0;
  std::map<Shape, int> shapes;
  std::unordered_map<std::string, int> hairpins;
};

/// Renders the touched service ports of one table into `rulesets`. @param sign  -1 before, +1
/// after.
class Collector {
 public:
  Collector(const ForwardingTable& table, int sign, Touched& v4, Touched& v6)
      : table_(table), sign_(sign), v4_(v4), v6_(v6) {}

  /// @return the numbers under which its endpoints remember.
  std::vector<std::uint32_t> add(ServiceSlot slot, Rulesets& rulesets,
                                 UnsupportedBySlot* unsupported) {
    const core::ServicePort* service = table_.service(slot);
    if (service == nullptr) {
      return {};
    }
    ServicePieces pieces = render_service(table_, slot);
    Touched& touched = service->family == Family::kIpv4 ? v4_ : v6_;
    touched.affinity += service->affinity_seconds != 0 ? sign_ : 0;
    for (const Shape& shape : pieces.shapes) {
      touched.shapes[shape] += sign_;
    }
    for (std::string& key : pieces.hairpins) {
      touched.hairpins[std::move(key)] += sign_;
    }
    if (unsupported != nullptr && !pieces.unsupported.empty()) {
      (*unsupported)[slot] = std::move(pieces.unsupported);
    }
    add_own(rulesets.of(service->family), pieces);
    return std::move(pieces.memories);
  }

 private:
  const ForwardingTable& table_;
  const int sign_;
  Touched& v4_;
  Touched& v6_;
};

/// Counts that changed; what comes or goes by it enters `after` or `before`.
void count_shared(const Touched& touched, const Shares& old, Shares& changed,
                  const core::NodePart& node_before, const core::NodePart& node_after,
                  Ruleset& before, Ruleset& after) {
  const auto next = [](std::uint32_t was, int by) {
    return static_cast<std::uint32_t>(static_cast<int>(was) + by);
  };
  changed.affinity = next(old.affinity, touched.affinity);
  if ((old.affinity == 0) != (changed.affinity == 0)) {
    (changed.affinity == 0 ? before : after).sets[names::kAffinity] = affinity_set();
  }
  for (const auto& [shape, by] : touched.shapes) {
    const auto found = old.shapes.find(shape);
    const std::uint32_t was = found == old.shapes.end() ? 0 : found->second;
    const std::uint32_t is = next(was, by);
    changed.shapes[shape] = is;
    const bool there = found != old.shapes.end();
    if (was != 0 && is == 0 && !picks(shape)) {
      before.chains[chain_name(shape)] = shape_chain(shape, node_before, before.family);
    } else if (!there && is != 0) {
      after.chains[chain_name(shape)] = shape_chain(shape, node_after, after.family);
    }
  }
  for (const auto& [key, by] : touched.hairpins) {
    const auto found = old.hairpins.find(key);
    const std::uint32_t was = found == old.hairpins.end() ? 0 : found->second;
    const std::uint32_t is = next(was, by);
    changed.hairpins[key] = is;
    if (was != 0 && is == 0) {
      before.elements[names::kHairpin].emplace_back(key, ElementValue());
    } else if (was == 0 && is != 0) {
      after.elements[names::kHairpin].emplace_back(key, ElementValue());
    }
  }
}

/// Addresses that only one of two sorted lists has become elements.
void add_difference(const std::vector<core::IpAddress>& from,
                    const std::vector<core::IpAddress>& without, Elements& to) {
  std::vector<core::IpAddress> only;
  std::set_difference(from.begin(), from.end(), without.begin(), without.end(),
                      std::back_inserter(only));
  for (const core::IpAddress& address : only) {
    to.emplace_back(address_key(address), ElementValue());
  }
}

void add_node_elements(const core::NodePart::PerFamily& b, const core::NodePart::PerFamily& a,
                       Ruleset& before, Ruleset& after) {
  const auto both = [&](const char* set, const auto& was, const auto& is) {
    add_difference(was, is, before.elements[set]);
    add_difference(is, was, after.elements[set]);
  };
  both(names::kClusterIps, b.active_cluster_ips, a.active_cluster_ips);
  if (!a.node_ports.match_all) {
    both(names::kNodePortIps, b.node_ports.addresses, a.node_ports.addresses);
  }
}

bool rules_differ_anywhere(const core::NodePart& before, const core::NodePart& after) {
  return std::any_of(std::begin(kFamilies), std::end(kFamilies),
                     [&](Family f) { return rules_differ(before, after, f); });
}

/// The node's rules changed, so every rule may have: both tables whole.
RenderedChange whole_change(const ForwardingTable& before, const ForwardingTable& after,
                            const SharesOfBoth& shares, const Scope& scope) {
  RenderedChange change;
  Rendered was = render(before, scope);
  change.before = std::move(was.rulesets);
  Rendered now = render(after, scope);
  change.forgotten = std::move(was.memories);
  for (const std::uint32_t number : now.memories) {
    change.forgotten.erase(number);
  }
  change.after = std::move(now.rulesets);
  change.shares = std::move(now.shares);
  change.unsupported = std::move(now.unsupported);
  change.whole = true;
  add_unused(change.before, shares, before.node());
  return change;
}

/// Room for the two largest containers, so that they do not grow step by step.
void reserve(const ForwardingTable& table, Rulesets& rulesets) {
  std::size_t services[2] = {};
  std::size_t slots[2] = {};
  for (std::uint32_t i = 0; i < table.slot_limit(); ++i) {
    if (const core::ServicePort* s = table.service(static_cast<ServiceSlot>(i))) {
      const std::size_t family = s->family == Family::kIpv4 ? 0 : 1;
      const std::size_t frontends = 1 + s->external_ips.size() + s->load_balancer_vips.size();
      services[family] += frontends;
      slots[family] += frontends * (s->cluster.size() + s->local.size());
    }
  }
  for (const Family f : kFamilies) {
    const std::size_t family = f == Family::kIpv4 ? 0 : 1;
    rulesets.of(f).elements[names::kServiceIps].reserve(services[family]);
    rulesets.of(f).elements[names::kServiceEndpoints].reserve(slots[family]);
  }
}

}  // namespace

Rendered render(const ForwardingTable& table, const Scope& scope) {
  Rendered out;
  Touched touched[2];
  Collector collector(table, 1, touched[0], touched[1]);
  for (const Family f : kFamilies) {
    out.rulesets.of(f) = render_node(table.node(), f, scope);
  }
  reserve(table, out.rulesets);
  for (std::uint32_t i = 0; i < table.slot_limit(); ++i) {
    const auto memories =
        collector.add(static_cast<ServiceSlot>(i), out.rulesets, &out.unsupported);
    out.memories.insert(memories.begin(), memories.end());
  }
  for (const Family f : kFamilies) {
    Ruleset none;
    none.family = f;
    count_shared(touched[f == Family::kIpv4 ? 0 : 1], {}, out.shares.of(f), table.node(),
                 table.node(), none, out.rulesets.of(f));
    declare_sizes(out.rulesets.of(f));
  }
  return out;
}

RenderedChange render_change(const ForwardingTable& before, const ForwardingTable& after,
                             const SharesOfBoth& shares, const Scope& scope) {
  const core::TableDiff diff = core::diff(before, after);
  if (diff.node_changed && rules_differ_anywhere(before.node(), after.node())) {
    return whole_change(before, after, shares, scope);
  }
  RenderedChange change;
  Touched touched[2];
  Collector was(before, -1, touched[0], touched[1]);
  Collector is(after, 1, touched[0], touched[1]);
  for (const ServiceSlot slot : core::touched_slots(diff, before, after)) {
    change.unsupported[slot];
    const auto gone = was.add(slot, change.before, nullptr);
    const auto stay = is.add(slot, change.after, &change.unsupported);
    change.forgotten.insert(gone.begin(), gone.end());
    std::for_each(stay.begin(), stay.end(), [&](auto n) { change.forgotten.erase(n); });
  }
  for (const Family f : kFamilies) {
    count_shared(touched[f == Family::kIpv4 ? 0 : 1], shares.of(f), change.shares.of(f),
                 before.node(), after.node(), change.before.of(f), change.after.of(f));
    if (diff.node_changed) {
      add_node_elements(before.node().of(f), after.node().of(f), change.before.of(f),
                        change.after.of(f));
    }
  }
  return change;
}

void merge(SharesOfBoth& shares, RenderedChange& change) {
  if (change.whole) {
    shares = std::move(change.shares);
    return;
  }
  for (const Family f : kFamilies) {
    shares.of(f).affinity = change.shares.of(f).affinity;
    for (const auto& [shape, count] : change.shares.of(f).shapes) {
      shares.of(f).shapes[shape] = count;
      if (count == 0 && !picks(shape)) {
        shares.of(f).shapes.erase(shape);
      }
    }
    for (const auto& [key, count] : change.shares.of(f).hairpins) {
      shares.of(f).hairpins[key] = count;
      if (count == 0) {
        shares.of(f).hairpins.erase(key);
      }
    }
  }
}

void add_unused(Rulesets& rulesets, const SharesOfBoth& shares, const core::NodePart& node) {
  for (const Family f : kFamilies) {
    for (const auto& [shape, count] : shares.of(f).shapes) {
      if (count == 0) {
        rulesets.of(f).chains[chain_name(shape)] = shape_chain(shape, node, f);
      }
    }
  }
}

}  // namespace sluice::kni::nft
