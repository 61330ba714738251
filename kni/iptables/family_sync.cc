#include "kni/iptables/family_sync.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <utility>

#include "kni/iptables/names.h"

namespace sluice::kni::ipt {
namespace {

using core::Error;
using core::ForwardingTable;
using core::Result;

constexpr std::chrono::hours kWholeEvery{1};  // SY-6

/// The number of the input line that a restore complains about.
std::optional<std::size_t> refused_line(std::string_view errors) {
  constexpr std::string_view kWord = "line";
  for (std::size_t at = errors.find(kWord); at != std::string_view::npos;
       at = errors.find(kWord, at + 1)) {
    std::size_t from = at + kWord.size();
    while (from < errors.size() && (errors[from] == ':' || errors[from] == ' ')) {
      ++from;
    }
    std::size_t line = 0;
    const auto [end, error] =
        std::from_chars(errors.data() + from, errors.data() + errors.size(), line);
    if (error == std::errc{}) {
      return line;
    }
  }
  return std::nullopt;
}

/// The line that was refused and whose it is.
std::string describe_line(std::string_view errors, std::string_view input,
                          const ForwardingTable& table) {
  const auto number = refused_line(errors);
  const std::string_view line = number ? line_of(input, *number) : std::string_view();
  if (line.empty()) {
    return {};
  }
  constexpr std::size_t kMost = 200;
  std::string out = "; the line is \"" + std::string(line.substr(0, kMost)) + "\"";
  const std::size_t chain = line.find("KUBE-");
  if (chain != std::string_view::npos) {
    const std::string_view name = line.substr(chain, line.find(' ', chain) - chain);
    if (const std::string service = service_of_chain(table, name); !service.empty()) {
      out += " of service " + service;
    }
  }
  return out;
}

}  // namespace

FamilySync::FamilySync(Runner& runner, Programs programs, const SyncOptions& options,
                       FamilyCounters& counters)
    : runner_(runner),
      programs_(std::move(programs)),
      options_(options),
      render_(options.render),
      counters_(counters) {
  render_.random_fully = render_.random_fully && programs_.random_fully;
  shared_.family = programs_.family;
}

Result<void> FamilySync::apply(const core::TablePtr& table) {
  lock_held_ = false;
  if (in_force_ != nullptr && whole_is_due(*table)) {
    in_force_ = nullptr;
  }
  if (in_force_ != nullptr &&
      (in_force_ == table || options_.clock() - last_look_ >= options_.sync_period)) {
    if (auto looked = look_around(); !looked) {
      return looked;
    }
  }
  if (in_force_ == table) {
    return {};
  }
  Result<void> done = sync(*table);
  in_force_ = done ? table : nullptr;
  return done;
}

/// Partial if it can be; one that fails is followed by a whole one (F73), unless that must fail.
Result<void> FamilySync::sync(const ForwardingTable& table) {
  const auto began = options_.clock();
  if (in_force_ != nullptr) {
    const Result<void> done = sync_change(table);
    counters_.durations.record(false, options_.clock() - began);
    if (done) {
      return done;
    }
    ++counters_.partial_failures;
    if (lock_held_ || (options_.ending && options_.ending())) {
      return done;
    }
    if (options_.warn) {
      options_.warn(done.error().message + "; everything is written anew");
    }
  }
  const auto anew = options_.clock();
  Result<void> done = sync_whole(table);
  counters_.durations.record(true, options_.clock() - anew);
  return done;
}

bool FamilySync::whole_is_due(const ForwardingTable& table) const {
  const core::Family family = programs_.family;
  const bool large = is_large(count_endpoints(table, family));
  const bool old = !large && options_.clock() - last_whole_ >= kWholeEvery;
  return old || large != large_ || service_chains_differ(in_force_->node(), table.node(), family) ||
         has_localhost_node_ports(in_force_->node(), family, render_) !=
             has_localhost_node_ports(table.node(), family, render_);
}

Result<void> FamilySync::look_around() {
  const auto present = read_present(runner_, programs_);
  if (!present) {
    return tl::make_unexpected(present.error());
  }
  last_look_ = options_.clock();
  if (!is_as_left(*present)) {
    in_force_ = nullptr;
    ++counters_.repairs;
    if (options_.warn) {
      options_.warn(programs_.stem + ": our chains were changed from outside; they are put right");
    }
  }
  return {};
}

bool FamilySync::is_as_left(const Present& present) {
  const bool guarded = present.guards_loopback() ||
                       !has_localhost_node_ports(in_force_->node(), programs_.family, render_);
  const std::vector<Hook> hooks = render_hooks(in_force_->node(), programs_.family, render_);
  return guarded && left_.is_still(present) &&
         std::all_of(hooks.begin(), hooks.end(),
                     [&](const Hook& hook) { return present.has_hook(hook); });
}

/// Rules of others in the chain that is kubelet's as well.
Result<std::vector<std::string>> FamilySync::others_in_firewall() {
  Present present;
  const Command command = programs_.show(Table::kFilter, kSharedFirewallChain);
  present.take(std::string("*") + name_of(Table::kFilter));
  const auto done = runner_.run(command, [&](std::string_view line) { present.take(line); });
  if (!done) {
    return tl::make_unexpected(done.error());
  }
  if (done->timed_out || done->status > 1) {  // 1: there is no such chain
    return tl::make_unexpected(Error{describe(command, *done)});
  }
  return present.shared_firewall();
}

void FamilySync::let_loopback_be_routed(const ForwardingTable& table) const {
  if (!has_localhost_node_ports(table.node(), programs_.family, render_)) {
    return;
  }
  // Whoever started us may have set it, and left us without the right to.
  if (int present = 0; std::ifstream(options_.route_localnet) >> present && present == 1) {
    return;
  }
  std::ofstream out(options_.route_localnet);
  if (!(out << 1 << std::flush) && options_.warn) {
    options_.warn(options_.route_localnet +
                  ": cannot be written; node ports do not answer on "
                  "127.0.0.1 (iptables.localhost-node-ports: false leaves it alone)");
  }
}

Result<void> FamilySync::sync_whole(const ForwardingTable& table) {
  const auto present = read_present(runner_, programs_);
  if (!present) {
    ++counters_.sync_failures;
    return tl::make_unexpected(present.error());
  }
  const std::vector<core::ServiceSlot> slots = ordered_slots(table, programs_.family);
  Ruleset shared = make_shared(table, slots, present->shared_firewall());
  const std::vector<Hook> hooks = render_hooks(table.node(), programs_.family, render_);
  const SyncText text =
      write_whole(table, programs_.family, shared, slots, hooks, *present, programs_.nft);
  if (auto done = restore(text, table); !done) {
    return done;
  }
  let_loopback_be_routed(table);
  ++counters_.full_syncs;
  left_.forget();
  note(text);
  service_rules_ = text.total.nat;
  for (const auto& [chain, rules] : shared.nat) {
    service_rules_ -= rules.size();
  }
  shared_ = std::move(shared);
  large_ = is_large(count_endpoints(table, programs_.family));
  stale_.clear();
  last_whole_ = last_look_ = last_delete_ = options_.clock();
  return {};
}

Result<void> FamilySync::sync_change(const ForwardingTable& table) {
  ServiceChange change = render_change(*in_force_, table, programs_.family, !large_);
  std::vector<std::string> others;
  if (has_localhost_node_ports(table.node(), programs_.family, render_)) {
    auto found = others_in_firewall();
    if (!found) {
      return tl::make_unexpected(found.error());
    }
    others = std::move(*found);
  }
  Ruleset shared = make_shared(table, ordered_slots(table, programs_.family), others);
  if (!change.touched && shared.filter == shared_.filter && shared.nat == shared_.nat) {
    return {};
  }
  const std::set<std::string> delete_now = take_stale(change);
  SyncText text = write_change(change, shared_, shared, delete_now, large_);
  const std::size_t service_rules = service_rules_ - change.rules_before + change.rules_after;
  text.total = {0, service_rules};
  for (const auto& [chain, rules] : shared.filter) {
    text.total.filter += rules.size();
  }
  for (const auto& [chain, rules] : shared.nat) {
    text.total.nat += rules.size();
  }
  if (auto done = restore(text, table); !done) {
    return done;
  }
  ++counters_.partial_syncs;
  note(text);
  service_rules_ = service_rules;
  shared_ = std::move(shared);
  return {};
}

/// Chains to delete in this sync.
std::set<std::string> FamilySync::take_stale(const ServiceChange& change) {
  stale_.insert(change.gone.begin(), change.gone.end());
  for (const auto& [chain, rules] : change.chains) {
    stale_.erase(chain);
  }
  const bool wait = large_ && options_.clock() - last_delete_ < options_.sync_period;
  if (wait || stale_.empty()) {
    return {};
  }
  last_delete_ = options_.clock();
  return std::exchange(stale_, {});
}

/// What all service ports share; others' rules of the chain that kubelet has, too, behind ours.
Ruleset FamilySync::make_shared(const ForwardingTable& table,
                                const std::vector<core::ServiceSlot>& slots,
                                const std::vector<std::string>& others) const {
  Ruleset shared = render_shared(table, programs_.family, slots, render_);
  if (const auto found = shared.filter.find(kSharedFirewallChain); found != shared.filter.end()) {
    found->second.insert(found->second.end(), others.begin(), others.end());
  }
  return shared;
}

Result<void> FamilySync::restore(const SyncText& text, const ForwardingTable& table) {
  const Command command = programs_.restore(text.text);
  const auto done = runner_.run(command, nullptr);
  lock_held_ = done && is_lock_held(*done);
  if (done && done->good()) {
    return {};
  }
  ++counters_.sync_failures;
  if (!done) {
    return tl::make_unexpected(done.error());
  }
  return tl::make_unexpected(
      Error{describe(command, *done) + describe_line(done->errors, text.text, table)});
}

void FamilySync::note(const SyncText& text) {
  counters_.filter_rules = text.total.filter;
  counters_.nat_rules = text.total.nat;
  counters_.last_filter_rules = text.written.filter;
  counters_.last_nat_rules = text.written.nat;
  left_.take(text.chains);
}

}  // namespace sluice::kni::ipt
