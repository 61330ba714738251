#include "kni/iptables/present.h"

#include <algorithm>

#include "kni/iptables/names.h"

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

/// Takes the first word off.
std::string_view take_word(std::string_view& text) {
  const std::size_t end = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

/// Chain or target that a rule goes to.
std::string_view target_of(std::string_view rule) {
  for (const std::string_view option : {" -j ", " -g "}) {
    const std::size_t at = (" " + std::string(rule)).rfind(option);
    if (at != std::string::npos) {
      std::string_view rest = rule.substr(at + option.size() - 1);
      return take_word(rest);
    }
  }
  return {};
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

void Present::take(std::string_view line) {
  if (line.empty()) {
    return;
  }
  if (line.front() == '*') {
    table_ = nullptr;
    for (const Table table : kTables) {
      if (line.substr(1) == name_of(table)) {
        table_ = &tables_[static_cast<std::size_t>(table)];
      }
    }
  } else if (table_ != nullptr && line.front() == ':') {
    line.remove_prefix(1);
    const std::string_view chain = take_word(line);
    if (chain.starts_with("KUBE-")) {
      table_->chains.emplace(chain);
    }
  } else if (table_ != nullptr && line.starts_with("-A ")) {
    take_rule(line.substr(3));
  }
}

void Present::take_rule(std::string_view rule) {
  ++rules_;
  const auto table = static_cast<Table>(table_ - tables_.data());
  const std::string_view chain = take_word(rule);
  if (is_ours(table, chain)) {
    ++table_->our_rules;
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
  const std::string_view target = target_of(rule);
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
