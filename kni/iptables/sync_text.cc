#include "kni/iptables/sync_text.h"

#include <algorithm>
#include <utility>

#include "dataplane/core/fwd/diff.h"
#include "kni/iptables/names.h"

namespace sluice::kni::ipt {
namespace {

using core::ForwardingTable;
using core::ServiceSlot;

std::size_t count(const Chains& chains) {
  std::size_t rules = 0;
  for (const auto& [chain, list] : chains) {
    rules += list.size();
  }
  return rules;
}

/// Rules of a chain of `chains`, or none.
const std::vector<std::string>& rules_of(const Chains& chains, const std::string& chain) {
  static const std::vector<std::string> kNone;
  const auto found = chains.find(chain);
  return found == chains.end() ? kNone : found->second;
}

/// The chains of `after` that differ from those of `before`.
Chains differing(const Chains& before, const Chains& after) {
  Chains out;
  for (const auto& [chain, rules] : after) {
    const auto found = before.find(chain);
    if (found == before.end() || found->second != rules) {
      out.emplace(chain, rules);
    }
  }
  return out;
}

/// Rules of `more` that `rules` has not.
std::vector<std::string> missing_in(const std::vector<std::string>& rules,
                                    const std::vector<std::string>& more) {
  const std::set<std::string_view> there(rules.begin(), rules.end());
  std::vector<std::string> out;
  for (const std::string& rule : more) {
    if (!there.contains(rule)) {
      out.push_back(rule);
    }
  }
  return out;
}

/// How a filter section has to stand to the nat section (theory of operation).
struct FilterOrder {
  bool adds = false;
  bool takes = false;
  Chains both;  ///< old refusals behind the new ones
};
FilterOrder order_of(const Chains& before, const Chains& after) {
  FilterOrder order;
  order.both = after;
  for (const auto& [chain, rules] : after) {
    const std::vector<std::string>& old = rules_of(before, chain);
    const std::vector<std::string> leaving = missing_in(rules, old);
    order.adds = order.adds || !missing_in(old, rules).empty();
    order.takes = order.takes || !leaving.empty();
    auto& both = order.both[chain];
    both.insert(both.end(), leaving.begin(), leaving.end());
  }
  return order;
}

void write_section(RestoreText& out, Table table, const Chains& chains) {
  out.begin(table);
  out.declare(chains);
  out.append(chains);
  out.commit();
}

/// A hook's rule as it is for any begin of the taps' names.
std::string_view without_taps(std::string_view rule) {
  constexpr std::string_view kNotFrom = "! -i ";
  if (rule.starts_with(kNotFrom)) {
    rule.remove_prefix(std::min(rule.find(' ', kNotFrom.size()), rule.size() - 1) + 1);
  }
  return rule;
}

/// Hooks as a daemon of another mode, or kube-proxy, has them: they would lead to our chains what
/// ours leave alone. Those to kubelet's chain are kubelet's.
void take_out_others_of(RestoreText& out, const Hook& hook, const Present& present) {
  if (hook.target == kSharedFirewallChain) {
    return;
  }
  for (const auto& [chain, rule] : present.of(hook.table).hooks) {
    if (chain == hook.chain && rule != hook.rule && without_taps(rule) == without_taps(hook.rule)) {
      out.take_out(chain, rule);
    }
  }
}

/// Hooks that are missing in a table.
void insert_hooks(RestoreText& out, Table table, const std::vector<Hook>& hooks,
                  const Present& present) {
  for (const Hook& hook : hooks) {
    if (hook.table != table) {
      continue;
    }
    take_out_others_of(out, hook, present);
    if (!present.has_hook(hook)) {
      out.insert(hook);
    }
  }
}

void write_whole_filter(RestoreText& out, const Ruleset& shared, const std::vector<Hook>& hooks,
                        const Present& present) {
  out.begin(Table::kFilter);
  out.declare(shared.filter);
  out.declare(kCanaryChain);
  out.append(shared.filter);
  insert_hooks(out, Table::kFilter, hooks, present);
  out.commit();
}

/// Chains of service ports that are there and that nothing of ours leads to any more.
std::vector<std::string> stale_chains(const Present& present,
                                      const std::set<std::string, std::less<>>& active) {
  const Present::InTable& nat = present.of(Table::kNat);
  std::vector<std::string> stale;
  for (const std::string& chain : nat.chains) {
    if (is_service_chain(chain) && !active.contains(chain)) {
      stale.push_back(chain);
    }
  }
  sort_for_deletion(stale);
  return stale;
}

/// The service ports' chains, a part of the slots at a time.
class NatWriter {
 public:
  NatWriter(RestoreText& out, const ForwardingTable& table, core::Family family,
            const std::vector<ServiceSlot>& slots)
      : out_(out),
        table_(table),
        slots_(slots),
        comments_(!is_large(count_endpoints(table, family))) {}

  [[nodiscard]] const std::set<std::string, std::less<>>& active() const { return active_; }

  /// Sections of their own; what marks is there before.
  void write_ahead(const Ruleset& shared) {
    for (std::size_t first = 0; first < slots_.size(); first += kServicesOfSection) {
      Chains chains = render(first, std::min(slots_.size(), first + kServicesOfSection));
      if (first == 0) {
        chains.insert(*shared.nat.find(kMarkChain));
      }
      write_section(out_, Table::kNat, chains);
    }
  }
  /// Parts of the present section.
  void write_parts() {
    for (std::size_t first = 0; first < slots_.size(); first += kServicesOfPart) {
      const Chains chains = render(first, std::min(slots_.size(), first + kServicesOfPart));
      out_.declare(chains);
      out_.append(chains);
    }
  }

 private:
  Chains render(std::size_t first, std::size_t end) {
    Chains chains;
    for (std::size_t i = first; i < end; ++i) {
      Chains own = render_service(table_, slots_[i], comments_);
      for (const auto& [chain, rules] : own) {
        active_.insert(chain);
      }
      chains.merge(own);
    }
    return chains;
  }

  RestoreText& out_;
  const ForwardingTable& table_;
  const std::vector<ServiceSlot>& slots_;
  const bool comments_;
  std::set<std::string, std::less<>> active_;
};

bool is_of(const ForwardingTable& table, ServiceSlot slot, core::Family family) {
  const core::ServicePort* s = table.service(slot);
  return s != nullptr && s->family == family;
}

}  // namespace

SyncText write_whole(const ForwardingTable& table, core::Family family, const Ruleset& shared,
                     const std::vector<ServiceSlot>& slots, const std::vector<Hook>& hooks,
                     const Present& present, bool sections) {
  RestoreText out;
  NatWriter writer(out, table, family, slots);
  Chains nat = shared.nat;
  if (sections && !slots.empty()) {
    writer.write_ahead(shared);
    nat.erase(kMarkChain);
  }
  write_whole_filter(out, shared, hooks, present);
  out.begin(Table::kNat);
  out.declare(nat);
  out.declare(kCanaryChain);
  if (!sections) {
    writer.write_parts();
  }
  const std::vector<std::string> stale = stale_chains(present, writer.active());
  for (const std::string& chain : stale) {
    out.declare(chain);
  }
  out.append(nat);
  insert_hooks(out, Table::kNat, hooks, present);
  for (const std::string& chain : stale) {
    if (!present.of(Table::kNat).wanted_by_others.contains(chain)) {
      out.remove(chain);  // others stay, empty: what they led to goes
    }
  }
  out.commit();
  write_section(out, Table::kMangle, {{kCanaryChain, {}}});
  const RuleCounts all{out.rules(Table::kFilter), out.rules(Table::kNat)};
  return {out.take(), all, all, out.take_written()};
}

ServiceChange render_change(const ForwardingTable& before, const ForwardingTable& after,
                            core::Family family, bool comments) {
  ServiceChange change;
  for (const ServiceSlot slot : core::touched_slots(core::diff(before, after), before, after)) {
    if (is_of(before, slot, family)) {
      const Chains old = render_service(before, slot, comments);
      change.rules_before += count(old);
      change.touched = true;
      for (const auto& [chain, rules] : old) {
        change.gone.insert(chain);
      }
    }
    if (is_of(after, slot, family)) {
      change.touched = true;
      change.chains.merge(render_service(after, slot, comments));
    }
  }
  change.rules_after = count(change.chains);
  for (const auto& [chain, rules] : change.chains) {
    change.gone.erase(chain);
  }
  return change;
}

SyncText write_change(const ServiceChange& change, const Ruleset& shared_before,
                      const Ruleset& shared_after, const std::set<std::string>& delete_now,
                      bool skip_equal) {
  RestoreText out;
  const FilterOrder order = order_of(shared_before.filter, shared_after.filter);
  Chains nat = skip_equal ? differing(shared_before.nat, shared_after.nat) : shared_after.nat;
  const bool filter_too =
      !skip_equal || order.adds || order.takes || shared_before.filter != shared_after.filter;
  if (order.adds) {
    write_section(out, Table::kFilter, order.takes ? order.both : shared_after.filter);
  }
  nat.insert(change.chains.begin(), change.chains.end());
  out.begin(Table::kNat);
  out.declare(nat);
  for (const std::string& chain : delete_now) {
    out.declare(chain);
  }
  out.append(nat);
  for (const std::string& chain : delete_now) {
    out.remove(chain);
  }
  out.commit();
  const RuleCounts written{count(shared_after.filter), out.rules(Table::kNat)};
  if (filter_too && (order.takes || !order.adds)) {
    write_section(out, Table::kFilter, shared_after.filter);
  }
  return {out.take(), written, {}, out.take_written()};
}

std::string write_cleanup(const Present& present) {
  RestoreText out;
  for (const Table table : {Table::kNat, Table::kFilter, Table::kMangle}) {
    const Present::InTable& in = present.of(table);
    std::vector<std::string> chains;
    for (const std::string& chain : in.chains) {
      if (is_ours(table, chain)) {
        chains.push_back(chain);
      }
    }
    if (chains.empty()) {
      continue;
    }
    out.begin(table);
    for (const std::string& chain : chains) {
      out.flush(chain);
    }
    for (const auto& [chain, rule] : in.hooks) {
      if (!rule.ends_with(std::string("-j ") + kSharedFirewallChain)) {
        out.take_out(chain, rule);
      }
    }
    sort_for_deletion(chains);
    for (const std::string& chain : chains) {
      if (!in.wanted_by_others.contains(chain)) {
        out.remove(chain);
      }
    }
    out.commit();
  }
  return out.take();
}

std::string service_of_chain(const ForwardingTable& table, std::string_view chain) {
  const std::size_t dash = chain.rfind('-');
  if (!is_service_chain(chain) || dash == std::string_view::npos) {
    return {};
  }
  const std::string_view hash = chain.substr(dash + 1);
  for (std::uint32_t i = 0; i < table.slot_limit(); ++i) {
    const core::ServicePort* s = table.service(static_cast<ServiceSlot>(i));
    if (s == nullptr) {
      continue;
    }
    const bool is_endpoint =
        std::any_of(s->endpoints.begin(), s->endpoints.end(), [&](const core::Endpoint& e) {
          return chain_hash(s->name, s->protocol, core::to_string(e.address, e.port)) == hash;
        });
    if (is_endpoint || chain_hash(s->name, s->protocol) == hash) {
      return s->name;
    }
  }
  return {};
}

}  // namespace sluice::kni::ipt
