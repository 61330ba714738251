#include "control/compile/compiler.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "control/compile/counted_addresses.h"
#include "control/compile/frontends.h"
#include "control/compile/service_blocks.h"
#include "control/compile/slice_index.h"
#include "dataplane/core/fwd/invariants.h"
#include "dataplane/core/fwd/table_builder.h"

namespace sluice::compile {
namespace {

/// What the compiler remembers of a block in the table: enough to take it out again.
struct Installed {
  core::ServiceSlot slot = core::ServiceSlot::kNone;
  std::vector<std::pair<core::FrontendKey, Claim>> claims;
  core::IpAddress cluster_ip;
  std::vector<core::IpAddress> announced;
};

struct Entry {
  std::vector<Installed> blocks;
  std::vector<HealthPort> health_ports;
  std::vector<ReportLine> lines;
};

/// Finds the lines of an object.
struct ByObject {
  bool operator()(const ReportLine& a, const std::string& b) const { return a.object < b; }
  bool operator()(const std::string& a, const ReportLine& b) const { return a < b.object; }
};

bool same_claims(const Installed& a, const Installed& b) {
  return std::equal(a.claims.begin(), a.claims.end(), b.claims.begin(), b.claims.end(),
                    [](const auto& x, const auto& y) {
                      return x.first == y.first && x.second.kind == y.second.kind &&
                             x.second.dispatches == y.second.dispatches &&
                             x.second.created == y.second.created && x.second.port == y.second.port;
                    });
}

}  // namespace

class Compiler::Impl {
 public:
  Impl(Profile profile, IdRegistry& ids, core::TablePtr previous)
      : profile_(profile),
        ids_(ids),
        previous_(previous != nullptr ? std::move(previous)
                                      : std::make_shared<const core::ForwardingTable>()) {}

  core::Result<Compiled> full(const model::ClusterState& state, const NodeConfig& config,
                              const HostState& host) {
    clear();
    take_inputs(state, config, host);
    slices_.rebuild(state);
    core::TableBuilder builder(previous_);
    for (const auto& [name, service] : state.services) {
      install(state, name, builder);
    }
    remove_unknown(builder);
    return finish(state, builder, true);
  }

  core::Result<Compiled> update(const model::ClusterState& state, const model::ChangeSet& changes,
                                const NodeConfig& config, const HostState& host) {
    if (!valid_ || (resolve_node(config, own_node(state, config), profile_) != context_)) {
      return full(state, config, host);
    }
    const bool node_part =
        changes.nodes || changes.service_cidrs || config != config_ || host != host_;
    take_inputs(state, config, host);
    std::set<model::ObjectName> names = slices_.update(state, changes.slices);
    names.insert(changes.services.begin(), changes.services.end());
    names.insert(changes.slice_owners.begin(), changes.slice_owners.end());
    if (retry_due()) {
      names.insert(short_of_ids_.begin(), short_of_ids_.end());
    }
    core::TableBuilder builder(previous_);
    for (const model::ObjectName& name : names) {
      install(state, name, builder);
    }
    return finish(state, builder, node_part);
  }

  [[nodiscard]] bool retry_due() const {
    return !short_of_ids_.empty() && ids_.releases() != releases_seen_;
  }

 private:
  static const model::Node* own_node(const model::ClusterState& state, const NodeConfig& config) {
    const auto at = state.nodes.find(config.node_name);
    return at == state.nodes.end() ? nullptr : &at->second;
  }

  void clear() {
    valid_ = false;
    health_changed_ = lines_changed_ = true;
    entries_.clear();
    contest_.clear();
    cluster_ips_.clear();
    announced_.clear();
    with_lines_.clear();
    with_health_.clear();
    short_of_ids_.clear();
  }

  void take_inputs(const model::ClusterState& state, const NodeConfig& config,
                   const HostState& host) {
    context_ = resolve_node(config, own_node(state, config), profile_);
    config_ = config;
    host_ = host;
  }

  [[nodiscard]] std::uint64_t next_generation() const { return previous_->generation() + 1; }

  /// Computes one Service again and puts the result in place of the old one.
  void install(const model::ClusterState& state, const model::ObjectName& name,
               core::TableBuilder& builder) {
    const auto service = state.services.find(name);
    ServiceResult result;
    if (service != state.services.end()) {
      result = compile_service(service->second, slices_.slices_of(state, name), context_, ids_);
    } else if (!entries_.contains(name)) {
      return;  // O-8: slices of a Service that does not exist
    }
    const auto at = entries_.try_emplace(name).first;
    Entry& entry = at->second;
    remove_missing(entry, result, builder);
    std::vector<Installed> installed;
    installed.reserve(result.blocks.size());
    for (PlacedBlock& placed : result.blocks) {
      installed.push_back(place(placed, at->first, entry, builder));
    }
    entry.blocks = std::move(installed);
    note(with_health_, name, !result.health_ports.empty());
    note(with_lines_, name, !result.lines.empty());
    note(short_of_ids_, name, result.short_of_ids);
    health_changed_ = health_changed_ || entry.health_ports != result.health_ports;
    entry.health_ports = std::move(result.health_ports);
    lines_changed_ = lines_changed_ || entry.lines != result.lines;
    entry.lines = std::move(result.lines);
    if (service == state.services.end()) {
      entries_.erase(at);
    }
  }

  static void note(std::set<model::ObjectName>& set, const model::ObjectName& name, bool in) {
    if (in) {
      set.insert(name);
    } else {
      set.erase(name);
    }
  }

  static Installed* find(std::vector<Installed>& blocks, core::ServiceSlot slot) {
    const auto at = std::find_if(blocks.begin(), blocks.end(),
                                 [&](const Installed& i) { return i.slot == slot; });
    return at == blocks.end() ? nullptr : &*at;
  }

  void remove_missing(Entry& entry, const ServiceResult& result, core::TableBuilder& builder) {
    for (const Installed& old : entry.blocks) {
      const bool stays = std::any_of(result.blocks.begin(), result.blocks.end(),
                                     [&](const PlacedBlock& p) { return p.slot == old.slot; });
      if (!stays) {
        withdraw(old);
        remove_slot(old.slot, builder);
      }
    }
  }

  void remove_slot(core::ServiceSlot slot, core::TableBuilder& builder) {
    builder.remove_service(slot);
    if (const core::ServicePort* block = previous_->service(slot); block != nullptr) {
      for (const core::Endpoint& e : block->endpoints) {
        ids_.retire_endpoint(e.id, next_generation());
      }
    }
    ids_.retire_slot(slot, next_generation());
  }

  /// Takes claims and address counts of a block back.
  void withdraw(const Installed& old) {
    for (const auto& [key, claim] : old.claims) {
      contest_.remove(key, claim.slot, claim.kind);
    }
    cluster_ips_.remove(old.cluster_ip);
    for (const core::IpAddress& a : old.announced) {
      announced_.remove(a);
    }
  }

  Installed place(PlacedBlock& placed, const model::ObjectName& name, Entry& entry,
                  core::TableBuilder& builder) {
    retire_departed(placed);
    Installed now = describe(placed, name);
    const Installed* old = find(entry.blocks, placed.slot);
    const bool same = old != nullptr && same_claims(*old, now) &&
                      old->cluster_ip == now.cluster_ip && old->announced == now.announced;
    if (!same) {
      if (old != nullptr) {
        withdraw(*old);
      }
      for (const auto& [key, claim] : now.claims) {
        contest_.add(key, claim);
      }
      cluster_ips_.add(now.cluster_ip);
      for (const core::IpAddress& a : now.announced) {
        announced_.add(a);
      }
    }
    builder.set_service(placed.slot, std::move(placed.block));
    return now;
  }

  /// Endpoints of the block in force that the new one has not.
  void retire_departed(const PlacedBlock& placed) {
    const core::ServicePort* before = previous_->service(placed.slot);
    if (before == nullptr) {
      return;
    }
    std::vector<core::EndpointId> stay;
    stay.reserve(placed.block.endpoints.size());
    for (const core::Endpoint& e : placed.block.endpoints) {
      stay.push_back(e.id);
    }
    std::sort(stay.begin(), stay.end());
    for (const core::Endpoint& e : before->endpoints) {
      if (!std::binary_search(stay.begin(), stay.end(), e.id)) {
        ids_.retire_endpoint(e.id, next_generation());
      }
    }
  }

  [[nodiscard]] Installed describe(const PlacedBlock& placed, const model::ObjectName& name) const {
    Installed out;
    out.slot = placed.slot;
    out.cluster_ip = placed.block.cluster_ip;
    for (const auto& [key, kind] : core::claimed_frontends(placed.block)) {
      out.claims.emplace_back(key,
                              Claim{placed.slot, kind, placed.block.dispatches(kind),
                                    placed.block.created_unix_seconds, placed.block.port, &name});
    }
    for (const auto* list : {&placed.block.load_balancer_vips, &placed.block.external_ips}) {
      for (const core::IpAddress& a : *list) {
        if (std::any_of(context_.announce.begin(), context_.announce.end(),
                        [&](const core::Cidr& c) { return c.contains(a); })) {
          out.announced.push_back(a);
        }
      }
    }
    return out;
  }

  /// After a full pass: what the previous table had and no Service made.
  void remove_unknown(core::TableBuilder& builder) {
    std::set<core::ServiceSlot> made;
    for (const auto& [name, entry] : entries_) {
      for (const Installed& i : entry.blocks) {
        made.insert(i.slot);
      }
    }
    for (std::uint32_t i = 0; i < previous_->slot_limit(); ++i) {
      const auto slot = static_cast<core::ServiceSlot>(i);
      if (previous_->service(slot) != nullptr && !made.contains(slot)) {
        remove_slot(slot, builder);
      }
    }
    previous_->for_each_frontend([&](const core::FrontendKey& key, const core::Frontend&) {
      if (!contest_.claimed(key)) {
        builder.remove_frontend(key);
      }
    });
  }

  core::Result<Compiled> finish(const model::ClusterState& state, core::TableBuilder& builder,
                                bool node_part) {
    releases_seen_ = ids_.releases();
    lines_changed_ = contest_.settle(builder) || lines_changed_;
    const bool addresses = cluster_ips_.take_changed() | announced_.take_changed();
    if (node_part || addresses) {
      set_node(state, builder);
    }
    auto table = builder.freeze();
    valid_ = table.has_value();
    if (!valid_) {
      return tl::make_unexpected(table.error());
    }
    previous_ = *table;
    return assemble();
  }

  void set_node(const model::ClusterState& state, core::TableBuilder& builder) {
    const auto before = std::exchange(node_lines_, {});
    {
      Reporter report("node " + context_.node_name, node_lines_);
      builder.set_node(
          build_node_part(config_, context_, state, host_, {cluster_ips_, announced_}, report));
    }
    report_service_cidrs(state);
    lines_changed_ = lines_changed_ || node_lines_ != before;
  }

  void report_service_cidrs(const model::ClusterState& state) {
    for (const auto& [name, object] : state.service_cidrs) {
      Reporter report("servicecidr " + name, node_lines_);
      for (std::size_t i = 0; i < object.cidrs.size(); ++i) {
        if (!core::parse_cidr(object.cidrs[i])) {
          report.invalid(indexed("spec.cidrs", i), "'" + object.cidrs[i] + "' is not a CIDR");
        }
      }
    }
  }

  [[nodiscard]] Compiled assemble() {
    if (health_changed_) {
      gather_health_ports();
    }
    if (lines_changed_) {
      gather_lines();
    }
    health_changed_ = lines_changed_ = false;
    return {previous_, health_ports_, report_};
  }

  void gather_health_ports() {
    std::vector<HealthPort> all;
    for (const model::ObjectName& name : with_health_) {
      const auto& ports = entries_.at(name).health_ports;
      all.insert(all.end(), ports.begin(), ports.end());
    }
    health_ports_ = SharedList(std::move(all));
  }

  void gather_lines() {
    std::vector<ReportLine> lines = node_lines_;
    for (const model::ObjectName& name : with_lines_) {
      const auto& mine = entries_.at(name).lines;
      lines.insert(lines.end(), mine.begin(), mine.end());
    }
    contest_.append_report(lines);
    std::stable_sort(lines.begin(), lines.end(),
                     [](const auto& a, const auto& b) { return a.object < b.object; });
    report_.lines = SharedList(std::move(lines));
  }

  Profile profile_;
  IdRegistry& ids_;
  core::TablePtr previous_;
  bool valid_ = false;
  NodeConfig config_;
  HostState host_;
  NodeContext context_;
  SliceIndex slices_;
  std::map<model::ObjectName, Entry> entries_;
  FrontendContest contest_;
  CountedAddresses cluster_ips_;
  CountedAddresses announced_;
  std::vector<ReportLine> node_lines_;
  std::set<model::ObjectName> with_lines_;
  std::set<model::ObjectName> with_health_;
  std::set<model::ObjectName> short_of_ids_;
  std::uint64_t releases_seen_ = 0;
  // What the last calls put together, and whether it has changed since.
  SharedList<HealthPort> health_ports_;
  Report report_;
  bool health_changed_ = false;
  bool lines_changed_ = false;
};

std::span<const ReportLine> Report::of(const std::string& object) const {
  const auto [first, last] = std::equal_range(lines.begin(), lines.end(), object, ByObject{});
  return {first, last};
}

Compiler::Compiler(Profile profile, IdRegistry& ids, core::TablePtr previous)
    : impl_(std::make_unique<Impl>(profile, ids, std::move(previous))) {}
Compiler::~Compiler() = default;
Compiler::Compiler(Compiler&&) noexcept = default;

core::Result<Compiled> Compiler::full(const model::ClusterState& state, const NodeConfig& config,
                                      const HostState& host) {
  return impl_->full(state, config, host);
}

core::Result<Compiled> Compiler::update(const model::ClusterState& state,
                                        const model::ChangeSet& changes, const NodeConfig& config,
                                        const HostState& host) {
  return impl_->update(state, changes, config, host);
}

bool Compiler::retry_due() const {
  return impl_->retry_due();
}

core::Result<Compiled> compile_full(const model::ClusterState& state, const NodeConfig& config,
                                    const HostState& host, Profile profile, IdRegistry& ids,
                                    core::TablePtr previous) {
  return Compiler(profile, ids, std::move(previous)).full(state, config, host);
}

}  // namespace sluice::compile
