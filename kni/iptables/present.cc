#include "kni/iptables/present.h"

#include <algorithm>
#include <functional>

#include "kni/iptables/names.h"
#include "kni/iptables/saved_line.h"

namespace sluice::kni::ipt {
namespace {

constexpr std::array<std::string_view, 5> kBuiltIn = {"PREROUTING", "INPUT", "FORWARD", "OUTPUT",
                                                      "POSTROUTING"};

template <class List, class Value>
bool contains(const List& list, const Value& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

/// A chain that our hooks lead to. A rule of a built-in chain that goes to another of our chains is
/// somebody else's.
bool is_hooked(std::string_view chain) {
  return chain != kMarkChain && chain != kCanaryChain && !is_service_chain(chain);
}

std::uint64_t mixed(std::uint64_t digest, std::string_view rule) {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15u;
  return ((digest ^ std::hash<std::string_view>()(rule)) * kOdd) | 1u;
}

}  // namespace

bool is_ours(Table table, std::string_view chain) {
  constexpr std::array<std::string_view, 6> kFilter = {kServicesChain, kExternalServicesChain,
                                                       kForwardChain,  kNodePortsChain,
                                                       kFirewallChain, kCanaryChain};
  constexpr std::array<std::string_view, 5> kNat = {kServicesChain, kNodePortsChain,
                                                    kPostroutingChain, kMarkChain, kCanaryChain};
  switch (table) {
    case Table::kFilter:
      return contains(kFilter, chain);
    case Table::kNat:
      return contains(kNat, chain) || is_service_chain(chain);
    case Table::kMangle:
      break;
  }
  return chain == kCanaryChain;
}

void Present::take(std::string_view text) {
  const SavedLine line = read_saved_line(text);
  if (line.kind == SavedLine::Kind::kTable) {
    const auto found = std::find_if(kTables.begin(), kTables.end(),
                                    [&](Table table) { return line.name == name_of(table); });
    table_ = found == kTables.end() ? nullptr : &tables_[static_cast<std::size_t>(*found)];
  } else if (table_ != nullptr && line.kind == SavedLine::Kind::kChain) {
    if (line.name.starts_with("KUBE-")) {
      table_->chains.emplace(line.name);
    }
    if (is_ours(static_cast<Table>(table_ - tables_.data()), line.name)) {
      table_->ours[std::string(line.name)];
    }
  } else if (table_ != nullptr && line.kind == SavedLine::Kind::kAppend) {
    take_rule(line.name, line.rule);
  }
}

void Present::take_rule(std::string_view chain, std::string_view rule) {
  ++rules_;
  const auto table = static_cast<Table>(table_ - tables_.data());
  if (is_ours(table, chain)) {
    InTable::Seen& seen = table_->ours[std::string(chain)];
    ++seen.rules;
    seen.digest = mixed(seen.digest, rule);
    return;
  }
  if (table == Table::kFilter && chain == kSharedFirewallChain) {
    if (rule.find(kLoopbackGuard) != std::string_view::npos) {
      guards_loopback_ = true;
    } else {
      shared_firewall_.emplace_back(rule);
    }
    return;
  }
  const std::string target = target_of(rule);
  const bool ours = is_ours(table, target) || target == kSharedFirewallChain;
  if (ours && is_hooked(target) && contains(kBuiltIn, chain)) {
    table_->hooks.emplace_back(chain, rule);
  } else if (ours) {
    table_->wanted_by_others.emplace(target);
  }
}

bool Present::has_hook(const Hook& hook) const {
  return contains(of(hook.table).hooks, std::pair(hook.chain, hook.rule));
}

bool Present::has_hints() const {
  const auto& chains = of(Table::kMangle).chains;
  return chains.contains("KUBE-IPTABLES-HINT") || chains.contains("KUBE-KUBELET-CANARY");
}

bool Present::has_ours() const {
  const auto& nat = of(Table::kNat).chains;
  return of(Table::kMangle).chains.contains(kCanaryChain) || nat.contains(kServicesChain) ||
         of(Table::kFilter).chains.contains(kServicesChain) ||
         std::any_of(nat.begin(), nat.end(), is_service_chain);
}

}  // namespace sluice::kni::ipt
